"""Server CPU of a decision through service/http/straight.py and through Starlette, in turns on one server.

`python bench/straight.py [CLIENTS [DECISIONS [PAIRS]]]`: a query sends a request to the normal path. The short path is
kept as long as it saves a fifth at 8 clients or more.
"""

import asyncio
import json
import os
import random
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from service.loading import HEAD, Server

ARMS = [[round(random.Random(arm * 10 + i).uniform(-0.3, 0.3), 3) for i in range(10)] for arm in range(20)]


def spent(pid):
    """Seconds of CPU that a process has used."""
    told = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(told[11]) + int(told[12])) / os.sysconf("SC_CLK_TCK")


async def decide(port, way, clients, many, tag):
    async def client(place):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for number in range(many // clients):
            raw = json.dumps({"id": f"{tag} {place} {number}", "arms": ARMS}).encode()
            writer.write(HEAD % (b"decide" + way, len(raw)) + raw)
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            assert b" 200 " in head[:20], head
            await reader.readexactly(int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0]))
        writer.close()

    await asyncio.gather(*map(client, range(clients)))


def main(clients=32, many=2400, pairs=9):
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder) / "a.db")
        try:
            server.put(policy={"name": "OFUL", "dim": 10, "horizon": 100_000})
            found = {b"": [], b"?": []}
            for pair in range(pairs + 1):  # the first warms up
                for way in (b"", b"?") if pair % 2 else (b"?", b""):
                    before = spent(server.process.pid)
                    asyncio.run(decide(server.port, way, clients, many, f"{pair}{way}"))
                    found[way].append((spent(server.process.pid) - before) / many * 1e6)
        finally:
            server.stop()
    short, plain = (found[way][1:] for way in (b"", b"?"))
    ratio = statistics.median(one / other for one, other in zip(short, plain, strict=True))
    print(f"{clients} clients: {statistics.median(short):.0f} and {statistics.median(plain):.0f} us, ratio {ratio:.2f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
