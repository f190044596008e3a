"""What people look at: why ops wait, timelines, memory, the search; as chunks for the front end, one HTML file, a picture. Knows nothing of TensorFlow."""
