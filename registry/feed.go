package registry

// FeedQuery selects events of the feed; empty fields do not restrict.
type FeedQuery struct {
	After  int64    // the cursor of the last event that was seen
	Types  []string // only events of these types
	Within []string // only events of items in these collections; nil: all, empty: none
	Limit  int      // 0: 50; at most 500
}
