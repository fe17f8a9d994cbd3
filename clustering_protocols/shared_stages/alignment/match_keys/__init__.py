"""Match keys: values of several columns that name a person where no common id does."""
