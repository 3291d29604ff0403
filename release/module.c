/* The module of a level: what all entries share. release/machine.py writes entries.h from the signatures of
   kernels/entries.py, and says LEVEL, CPU and SOURCES. */
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* What code that allocates asks for: the head of an array as numba lays it out, and its numbers behind it. */
struct block { size_t references; void *end, *information, *data; size_t size; void *outside; };
void *NRT_MemInfo_alloc_aligned(size_t size, uint32_t alignment)
{
    size_t head = sizeof(struct block) + alignment;
    if (size > SIZE_MAX / 2) return 0;
    struct block *made = malloc(head + size);
    if (!made) return 0;
    uintptr_t first = (uintptr_t)(made + 1);
    *made = (struct block){1, 0, 0, (void *)(first + (alignment - first % alignment) % alignment), size, 0};
    return made;
}
void NRT_MemInfo_call_dtor(void *made) { free(made); }

/* An array that is held for many calls: its buffer, asked for once. */
struct held { PyObject_HEAD Py_buffer view; };
struct own { PyTypeObject *held; };
static void held_end(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyBuffer_Release(&((struct held *)self)->view);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}
static PyType_Slot held_slots[] = {{Py_tp_dealloc, held_end}, {0, 0}};
static PyType_Spec held_spec = {"driftwise.Held", sizeof(struct held), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
                                held_slots};

static PyObject *hold(PyObject *self, PyObject *array)
{
    PyTypeObject *type = ((struct own *)PyModule_GetState(self))->held;
    struct held *made = (struct held *)PyType_GenericAlloc(type, 0);
    if (!made) return 0;
    if (PyObject_GetBuffer(array, &made->view, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS)) {
        made->view.obj = 0;
        Py_DECREF(made);
        return 0;
    }
    return (PyObject *)made;
}

/* A packed array of doubles or of 64-bit whole numbers, that may be written to where code does: held already, or asked
   for now, in which case the room keeps what is to be given back. */
static Py_buffer *take(PyObject *self, PyObject *given, Py_buffer *room, int dimensions, int whole, int written,
                       const char *name)
{
    Py_buffer *held = room;
    if (Py_TYPE(given) == ((struct own *)PyModule_GetState(self))->held) held = &((struct held *)given)->view;
    else if (PyObject_GetBuffer(given, room, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS | (written ? PyBUF_WRITABLE : 0)))
        return 0;
    const char *format = held->format ? held->format : "B";
    if (*format == '@' || *format == '=') format++;
    int right = format[0] && !format[1] && (whole ? *format == 'l' || *format == 'q' : *format == 'd');
    if (right && held->itemsize == 8 && held->ndim == dimensions && held->shape && held->strides
        && (uintptr_t)held->buf % 8 == 0 && !(written && held->readonly))
        return held;
    PyErr_Format(PyExc_TypeError, "%s: wanted a packed, aligned%s array of %d dimensions of %s", name,
                 written ? ", writable" : "", dimensions, whole ? "int64" : "float64");
    if (held == room) PyBuffer_Release(room);
    return 0;
}

static int take_tuple(PyObject *given, Py_ssize_t size, const char *name)
{
    if (PyTuple_Check(given) && PyTuple_Size(given) == size) return 0;
    PyErr_Format(PyExc_TypeError, "%s: wanted a tuple of %zd", name, size);
    return -1;
}

static void give_back(Py_buffer **held, Py_buffer *rooms, int count)
{
    while (count-- > 0) if (held[count] == &rooms[count]) PyBuffer_Release(&rooms[count]);
}

static PyObject *give(int size, ...)
{
    va_list items;
    va_start(items, size);
    PyObject *found = PyTuple_New(size);
    for (int i = 0; i < size; i++) {
        PyObject *one = va_arg(items, PyObject *);
        if (found && one) PyTuple_SetItem(found, i, one);
        else { Py_XDECREF(one); Py_CLEAR(found); }
    }
    va_end(items);
    return found;
}

#include "entries.h"

static PyObject *level(PyObject *self, PyObject *none)
{
    (void)self; (void)none;
#ifdef __x86_64__
    __builtin_cpu_init();
    if (__builtin_cpu_supports("x86-64-v4")) return PyLong_FromLong(4);
    if (__builtin_cpu_supports("x86-64-v3")) return PyLong_FromLong(3);
    return PyLong_FromLong(__builtin_cpu_supports("x86-64-v2") ? 2 : 1);
#else
    return PyLong_FromLong(8);
#endif
}

static PyMethodDef methods[] = {
    ENTRIES
    {"level", level, METH_NOARGS, "The level that the processor has."},
    {"hold", hold, METH_O, "An array as entries take it, for many calls."},
    {0, 0, 0, 0}};
static int fill(PyObject *module)
{
    struct own *own = PyModule_GetState(module);
    own->held = (PyTypeObject *)PyType_FromModuleAndSpec(module, &held_spec, 0);
    return own->held ? PyModule_AddStringConstant(module, "sources", SOURCES) : -1;
}
static int visit(PyObject *module, visitproc visit, void *arg)
{
    struct own *own = PyModule_GetState(module);
    if (own) Py_VISIT(own->held);
    return 0;
}
static int clear(PyObject *module)
{
    struct own *own = PyModule_GetState(module);
    if (own) Py_CLEAR(own->held);
    return 0;
}
static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)fill}, {0, 0}};
#define QUOTED(level) #level
#define NAME(level) QUOTED(level)
static struct PyModuleDef made = {PyModuleDef_HEAD_INIT, NAME(LEVEL), "Machine code for " CPU ".",
                                  sizeof(struct own), methods, slots, visit, clear, 0};
#define INIT(level) PyInit_##level
#define MADE(level) INIT(level)
PyMODINIT_FUNC MADE(LEVEL)(void) { return PyModuleDef_Init(&made); }
