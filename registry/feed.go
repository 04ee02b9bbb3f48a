package registry

// FeedQuery selects events of the feed; empty fields do not restrict.
type FeedQuery struct {
	After  int64    `json:"after"`  // the cursor of the last event that was seen
	Types  []string `json:"types"`  // only events of these types
	Within []string `json:"within"` // only events of items in these collections; nil: all, empty: none
	Limit  int      `json:"limit"`  // 0: 50; at most 500
}
