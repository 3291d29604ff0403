"""The paper, side by side: its experiments, statements and theorems beside what was measured."""
