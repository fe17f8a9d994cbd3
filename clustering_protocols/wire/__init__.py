"""What the service and the SDK share: the formats that one writes and the other reads."""
