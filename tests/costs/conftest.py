from tf_setup import clean_hook, seen

__all__ = ["clean_hook", "seen"]
