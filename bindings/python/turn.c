/* SPDX-License-Identifier: Apache-2.0 */
/* A Turn is the lock of one object of the library, which takes one thread at a time.
 *
 *     with turn:              waits for the turn without a limit
 *     with turn.until(end):   waits until then; 0 does not wait at all
 *
 * It differs from Python's locks in what the binding needs. The wait for it counts against the time
 * limit of the call that it guards. A thread that has it already, as in a signal handler or a
 * __del__, is told how deep it is, or is refused: it cannot wait for itself. What must not happen
 * in the middle of a call (a close) is done at the end of the turn. As with every `with`, a handler
 * that raises finds the turn taken and guarded, or not taken.
 *
 * The GIL guards all members; only the wait for `lock` gives it up. */
#define Py_LIMITED_API 0x030b0000
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define NS_PER_S 1000000000ll
#define NS_PER_US 1000ll
/* A wait looks at the clock again so often. */
#define WAIT_US_MAX 3600000000ll
/* How long a thread that waits between two turns lets others have one: pauses and their number. */
#define PAUSE_NS 100000
#define PAUSES_MAX 100

typedef struct {
    PyObject ob_base;
    PyThread_type_lock lock;
    unsigned long owner; /* The thread whose turn it is; of meaning if is_taken. */
    bool is_taken;
    Py_ssize_t depth; /* How many calls of the owner are inside of its first one. */
    Py_ssize_t waiting;
    size_t turns;     /* Begun so far. */
    PyObject *late;   /* Makes the exception of a wait that was too long. */
    PyObject *nested; /* The same for a call inside of another; None: it is let in. */
    PyObject *after;  /* A list of what is called at the end of the turn; NULL: nothing. */
    PyObject *watch;  /* Called at the end of each turn that may have waited; NULL: nothing. */
    PyTypeObject *limited_type; /* Cost: looking for them at each until() takes longer than all. */
    allocfunc limited_alloc;
} Turn;

/* What until() returns; `with` enters it once. */
typedef struct {
    PyObject ob_base;
    Turn *turn;
    int64_t end_ns;
} Limited;

typedef struct {
    PyTypeObject *limited_type;
} State;

static struct PyModuleDef module;

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static PyObject *raise(PyObject *make)
{
    PyObject *error = PyObject_CallNoArgs(make);
    if (error) {
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
        Py_DECREF(error);
    }
    return NULL;
}

static bool is_own(const Turn *turn)
{
    return turn->is_taken && turn->owner == PyThread_get_thread_ident();
}

/* Wait for the lock; false: an exception is set. end_ns < 0: without a limit. */
static bool wait_for_lock(Turn *turn, int64_t end_ns)
{
    for (;;) {
        PY_TIMEOUT_T wait_us = WAIT_US_MAX;
        if (end_ns >= 0) {
            int64_t left_ns = end_ns > 0 ? end_ns - now_ns() : 0;
            if (left_ns <= 0) {
                raise(turn->late);
                return false;
            }
            if (left_ns < WAIT_US_MAX * NS_PER_US)
                wait_us = left_ns / NS_PER_US + 1;
        }
        PyLockStatus status;
        turn->waiting++;
        Py_BEGIN_ALLOW_THREADS status = PyThread_acquire_lock_timed(turn->lock, wait_us, 1);
        Py_END_ALLOW_THREADS turn->waiting--;
        if (status == PY_LOCK_ACQUIRED)
            return true;
        if (status == PY_LOCK_INTR && PyErr_CheckSignals() < 0)
            return false;
    }
}

/* Returns the depth, 0 for the outermost call of a thread. */
static PyObject *enter(Turn *turn, int64_t end_ns)
{
    if (is_own(turn)) {
        if (turn->nested != Py_None)
            return raise(turn->nested);
        return PyLong_FromSsize_t(++turn->depth);
    }
    if (!PyThread_acquire_lock(turn->lock, NOWAIT_LOCK) && !wait_for_lock(turn, end_ns))
        return NULL;
    turn->owner = PyThread_get_thread_ident();
    turn->is_taken = true;
    turn->turns++;
    return PyLong_FromLong(0);
}

static void call(PyObject *what)
{
    PyObject *result = PyObject_CallNoArgs(what);
    if (!result)
        PyErr_WriteUnraisable(what);
    Py_XDECREF(result);
}

static void call_all(PyObject *list)
{
    for (Py_ssize_t i = 0; i < PyList_Size(list); i++)
        call(PyList_GetItem(list, i));
    Py_DECREF(list);
}

static PyObject *leave(Turn *turn, bool may_have_waited)
{
    if (turn->depth > 0) {
        turn->depth--;
        Py_RETURN_NONE;
    }
    PyObject *after = turn->after;
    turn->after = NULL;
    turn->is_taken = false;
    PyThread_release_lock(turn->lock);
    if (after)
        call_all(after);
    if (may_have_waited && turn->watch) {
        PyObject *watch = turn->watch;
        Py_INCREF(watch);
        call(watch);
        Py_DECREF(watch);
    }
    Py_RETURN_NONE;
}

/* ---- Turn ------------------------------------------------------------------------------------ */

static PyObject *turn_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *late, *nested;
    if (kwargs && PyDict_Size(kwargs) > 0) {
        PyErr_SetString(PyExc_TypeError, "Turn takes no keyword arguments");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "OO", &late, &nested))
        return NULL;
    State *state = PyType_GetModuleState(type);
    if (!state)
        return NULL;
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    Turn *turn = (Turn *)alloc(type, 0); /* Zeroed. */
    if (!turn)
        return NULL;
    Py_INCREF((PyObject *)state->limited_type);
    turn->limited_type = state->limited_type;
    turn->limited_alloc = (allocfunc)PyType_GetSlot(state->limited_type, Py_tp_alloc);
    Py_INCREF(late);
    Py_INCREF(nested);
    turn->late = late;
    turn->nested = nested;
    turn->lock = PyThread_allocate_lock();
    if (!turn->lock) {
        Py_DECREF((PyObject *)turn);
        return PyErr_NoMemory();
    }
    return (PyObject *)turn;
}

static int turn_traverse(PyObject *self, visitproc visit, void *arg)
{
    Turn *turn = (Turn *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(turn->late);
    Py_VISIT(turn->nested);
    Py_VISIT(turn->after);
    Py_VISIT(turn->watch);
    Py_VISIT(turn->limited_type);
    return 0;
}

static int turn_clear(PyObject *self)
{
    Turn *turn = (Turn *)self;
    Py_CLEAR(turn->late);
    Py_CLEAR(turn->nested);
    Py_CLEAR(turn->after);
    Py_CLEAR(turn->watch);
    return 0;
}

static void give_memory_back(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF((PyObject *)type);
}

static void turn_dealloc(PyObject *self)
{
    Turn *turn = (Turn *)self;
    PyObject_GC_UnTrack(self);
    (void)turn_clear(self);
    Py_XDECREF((PyObject *)turn->limited_type);
    if (turn->lock)
        PyThread_free_lock(turn->lock);
    give_memory_back(self);
}

static PyObject *turn_enter(PyObject *self, PyObject *none)
{
    (void)none;
    return enter((Turn *)self, -1);
}

static PyObject *turn_exit(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)args;
    (void)count;
    return leave((Turn *)self, true);
}

static PyObject *turn_until(PyObject *self, PyObject *end)
{
    if (end == Py_None) {
        Py_INCREF(self);
        return self;
    }
    int64_t end_ns = PyLong_AsLongLong(end);
    if (end_ns < 0) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "the end of a wait is a time of the clock");
        return NULL;
    }
    Turn *turn = (Turn *)self;
    Limited *limited = (Limited *)turn->limited_alloc(turn->limited_type, 0);
    if (!limited)
        return NULL;
    Py_INCREF(self);
    limited->turn = turn;
    limited->end_ns = end_ns;
    return (PyObject *)limited;
}

static PyObject *turn_is_own(PyObject *self, PyObject *none)
{
    (void)none;
    return PyBool_FromLong(is_own((Turn *)self));
}

static PyObject *turn_is_others(PyObject *self, PyObject *none)
{
    (void)none;
    return PyBool_FromLong(((Turn *)self)->is_taken && !is_own((Turn *)self));
}

static PyObject *turn_then(PyObject *self, PyObject *what)
{
    Turn *turn = (Turn *)self;
    if (!turn->is_taken)
        return PyObject_CallNoArgs(what);
    if (!turn->after) {
        PyObject *list = PyList_New(0);
        if (!list)
            return NULL;
        if (!turn->is_taken || turn->after) { /* The garbage collector has run. */
            Py_DECREF(list);
            return turn_then(self, what);
        }
        turn->after = list;
    }
    if (PyList_Append(turn->after, what) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *turn_watch(PyObject *self, PyObject *what)
{
    Turn *turn = (Turn *)self;
    PyObject *before = turn->watch;
    turn->watch = what == Py_None ? NULL : what;
    Py_XINCREF(turn->watch);
    Py_XDECREF(before);
    Py_RETURN_NONE;
}

static PyObject *turn_let_others(PyObject *self, PyObject *none)
{
    const Turn *turn = (Turn *)self;
    const size_t turns = turn->turns;
    (void)none;
    for (int i = 0; i < PAUSES_MAX && turn->waiting > 0 && turn->turns == turns; i++) {
        Py_BEGIN_ALLOW_THREADS nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
        Py_END_ALLOW_THREADS
    }
    Py_RETURN_NONE;
}

static PyMethodDef turn_methods[] = {
    {"__enter__", turn_enter, METH_NOARGS, "Wait for the turn; how deep in this thread's calls."},
    {"__exit__", (PyCFunction)(void (*)(void))turn_exit, METH_FASTCALL, "End the turn."},
    {"until", turn_until, METH_O,
     "For `with`: the same, waiting until that time of time.monotonic_ns() at most; 0: not at all; "
     "None: without a limit."},
    {"is_own", turn_is_own, METH_NOARGS, "Is it this thread's turn?"},
    {"is_others", turn_is_others, METH_NOARGS, "Is it another thread's turn?"},
    {"then", turn_then, METH_O, "Call this at the end of the turn; at once if it is nobody's."},
    {"watch", turn_watch, METH_O,
     "Call this at the end of each turn that may have waited; None: nothing."},
    {"let_others", turn_let_others, METH_NOARGS,
     "Between two turns of a long wait: let a thread that waits have one."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot turn_slots[] = {
    {Py_tp_doc, "Turn(late, nested): whose turn it is. `late` and `nested` make exceptions."},
    {Py_tp_new, turn_new},
    {Py_tp_traverse, turn_traverse},
    {Py_tp_clear, turn_clear},
    {Py_tp_dealloc, turn_dealloc},
    {Py_tp_methods, turn_methods},
    {0, NULL},
};

static PyType_Spec turn_spec = {
    .name = "velo._turn.Turn",
    .basicsize = sizeof(Turn),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = turn_slots,
};

/* ---- Limited --------------------------------------------------------------------------------- */

static void limited_dealloc(PyObject *self)
{
    Py_DECREF((PyObject *)((Limited *)self)->turn);
    give_memory_back(self);
}

static PyObject *limited_enter(PyObject *self, PyObject *none)
{
    const Limited *limited = (Limited *)self;
    (void)none;
    return enter(limited->turn, limited->end_ns);
}

static PyObject *limited_exit(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    const Limited *limited = (Limited *)self;
    (void)args;
    (void)count;
    return leave(limited->turn, limited->end_ns > 0);
}

static PyMethodDef limited_methods[] = {
    {"__enter__", limited_enter, METH_NOARGS, "Wait for the turn."},
    {"__exit__", (PyCFunction)(void (*)(void))limited_exit, METH_FASTCALL, "End the turn."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot limited_slots[] = {
    {Py_tp_doc, "A turn that is waited for until some time."},
    {Py_tp_dealloc, limited_dealloc},
    {Py_tp_methods, limited_methods},
    {0, NULL},
};

static PyType_Spec limited_spec = {
    .name = "velo._turn.Limited",
    .basicsize = sizeof(Limited),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = limited_slots,
};

/* ---- the module ------------------------------------------------------------------------------ */

/* What a sub-interpreter with a GIL of its own is told by Python itself. The others could load
 * this, but cffi's module ends some of them by abort(). */
static int refuse_subinterpreter(void)
{
    if (PyInterpreterState_GetID(PyInterpreterState_Get()) == 0)
        return 0;
    PyErr_SetString(PyExc_ImportError,
                    "module velo._turn does not support loading in subinterpreters");
    return -1;
}

static int turn_exec(PyObject *self)
{
    if (refuse_subinterpreter() < 0)
        return -1;
    State *state = PyModule_GetState(self);
    state->limited_type = (PyTypeObject *)PyType_FromModuleAndSpec(self, &limited_spec, NULL);
    if (!state->limited_type)
        return -1;
    PyObject *type = PyType_FromModuleAndSpec(self, &turn_spec, NULL);
    int status = type ? PyModule_AddType(self, (PyTypeObject *)type) : -1;
    Py_XDECREF(type);
    return status;
}

static int module_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(((State *)PyModule_GetState(self))->limited_type);
    return 0;
}

static int module_clear(PyObject *self)
{
    Py_CLEAR(((State *)PyModule_GetState(self))->limited_type);
    return 0;
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, turn_exec},
    {0, NULL},
};

static PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "velo._turn",    "Whose turn it is.", sizeof(State), NULL,
    module_slots,          module_traverse, module_clear,        NULL,
};

PyMODINIT_FUNC PyInit__turn(void) { return PyModuleDef_Init(&module); }
