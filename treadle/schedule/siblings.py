def merge_siblings(decided, target):
    return None
