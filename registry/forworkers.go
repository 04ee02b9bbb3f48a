package registry

import "context"

// ForWorkers is everything that workers call of the Registry: directly in the same process, or over
// HTTP (web/protocol). Every argument has a bound (registry/bounds); ErrInvalid if one is exceeded.
type ForWorkers interface {
	// Attempts and items.
	Working
	ItemReader
	Queue
	// Functions.
	Serving
	// Deposits.
	Uploads
	Batching
	ReportReader
	// Objects.
	Preserving
	Inventory
	Locking
	Deleting
	Checking
	Restoring
	// Receivers, and credentials for them and for sources.
	Delivering
	DeliveryReader
	Mailing
	Unlocking
	// Ping reports whether the store answers.
	Ping(ctx context.Context) error
}
