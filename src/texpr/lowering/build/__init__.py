"""From a nest to its steps (`build.build`): threads, kinds of work, coordinates, and the paths between two steps."""
