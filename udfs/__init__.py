"""What runs inside Python workers on Arrow batches. Nothing here opens a Spark session."""
