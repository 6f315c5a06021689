"""SmallNORB: toys by category, instance, elevation, azimuth and lighting."""
