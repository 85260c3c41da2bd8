/* SPDX-License-Identifier: Apache-2.0 */
/* A Lease shows a piece of the library's memory to Python's buffer protocol, and counts who looks.
 *
 * The binding lends memory that goes away: a message that is released, a ring that is unmapped. A
 * memoryview cannot be taken back once somebody has made a slice or an array of it, so a lease ends
 * only when nobody looks any more; after that it shows nothing. No other part of Python below 3.12
 * can tell this. */
#define Py_LIMITED_API 0x030b0000
#include <Python.h>

typedef struct {
    PyObject ob_base;
    PyObject *owner; /* Keeps the memory's owner alive while somebody looks. */
    void *address;   /* NULL once the lease has ended. */
    Py_ssize_t len_bytes;
    Py_ssize_t exports; /* Buffers that are out; the GIL guards it. */
    int readonly;
} Lease;

static PyObject *lease_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *owner, *address;
    Py_ssize_t len_bytes;
    int readonly;
    if (kwargs && PyDict_Size(kwargs) > 0) {
        PyErr_SetString(PyExc_TypeError, "Lease takes no keyword arguments");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "OOnp", &owner, &address, &len_bytes, &readonly))
        return NULL;
    void *first = PyLong_AsVoidPtr(address);
    if (!first && PyErr_Occurred())
        return NULL;
    if (!first || len_bytes < 0) {
        PyErr_SetString(PyExc_ValueError, "a lease needs an address and a length of 0 or more");
        return NULL;
    }
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    Lease *lease = (Lease *)alloc(type, 0);
    if (!lease)
        return NULL;
    Py_INCREF(owner);
    lease->owner = owner;
    lease->address = first;
    lease->len_bytes = len_bytes;
    lease->exports = 0;
    lease->readonly = readonly;
    return (PyObject *)lease;
}

static int lease_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((Lease *)self)->owner);
    return 0;
}

static int lease_clear(PyObject *self)
{
    Py_CLEAR(((Lease *)self)->owner);
    return 0;
}

static void lease_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    (void)lease_clear(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF((PyObject *)type);
}

static int lease_getbuffer(PyObject *self, Py_buffer *view, int flags)
{
    Lease *lease = (Lease *)self;
    if (!lease->address) {
        view->obj = NULL;
        PyErr_SetString(PyExc_ValueError, "this memory was given back: the message was released, "
                                          "or its port was closed");
        return -1;
    }
    int status =
        PyBuffer_FillInfo(view, self, lease->address, lease->len_bytes, lease->readonly, flags);
    if (status == 0)
        lease->exports++;
    return status;
}

static void lease_releasebuffer(PyObject *self, Py_buffer *view)
{
    (void)view;
    ((Lease *)self)->exports--;
}

static PyObject *lease_exports(PyObject *self, PyObject *none)
{
    (void)none;
    return PyLong_FromSsize_t(((Lease *)self)->exports);
}

static PyObject *lease_end(PyObject *self, PyObject *none)
{
    Lease *lease = (Lease *)self;
    (void)none;
    if (lease->exports > 0) {
        PyErr_SetString(PyExc_BufferError,
                        "the memory is still in use: a slice or an array of it is alive; delete "
                        "it, or copy what is to be kept");
        return NULL;
    }
    lease->address = NULL;
    Py_RETURN_NONE;
}

static PyMethodDef lease_methods[] = {
    {"exports", lease_exports, METH_NOARGS, "How many buffers are out."},
    {"end", lease_end, METH_NOARGS, "Show nothing any more; BufferError while a buffer is out."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot lease_slots[] = {
    {Py_tp_doc, "Lease(owner, address, len_bytes, readonly): memory that is lent."},
    {Py_tp_new, lease_new},
    {Py_tp_traverse, lease_traverse},
    {Py_tp_clear, lease_clear},
    {Py_tp_dealloc, lease_dealloc},
    {Py_tp_methods, lease_methods},
    {Py_bf_getbuffer, lease_getbuffer},
    {Py_bf_releasebuffer, lease_releasebuffer},
    {0, NULL},
};

static PyType_Spec lease_spec = {
    .name = "velo._lease.Lease",
    .basicsize = sizeof(Lease),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = lease_slots,
};

static int lease_exec(PyObject *module)
{
    PyObject *type = PyType_FromModuleAndSpec(module, &lease_spec, NULL);
    int status = type ? PyModule_AddType(module, (PyTypeObject *)type) : -1;
    Py_XDECREF(type);
    return status;
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, lease_exec},
    {0, NULL},
};

static PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    "velo._lease",
    "Memory that is lent to Python.",
    0,
    NULL,
    module_slots,
    NULL,
    NULL,
    NULL,
};

PyMODINIT_FUNC PyInit__lease(void) { return PyModuleDef_Init(&module); }
