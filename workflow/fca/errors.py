"""In: what went wrong. Out: one message that a person can act on."""


class FcaError(Exception):
    """A mistake or a failed proof that the person can understand and act on.

    The message names the key, file or module, what was found there and what would be
    possible. The command line prints it without a traceback and exits with status 1.
    """


class ProofError(FcaError):
    """A guarantee of the audit that did not hold; the run stops rather than report numbers."""


class Undefined(FcaError):
    """Something that is not defined for this model or these inputs; reported as undefined."""
