"""Many small networks trained as one: probes of many factors, layers and seeds."""
