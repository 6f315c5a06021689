"""CIFAR-10 and CIFAR-100: small photographs of many categories, from the published Python or binary files."""
