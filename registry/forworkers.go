package registry

import "context"

// ForWorkers is all that workers ask of the Registry: of the store itself in one process with it,
// over HTTP from another one (web/protocol). Whatever else the Registry can do is not for workers.
// Every argument has bounds (registry/bounds): ErrInvalid when one is beyond.
type ForWorkers interface {
	// Of their attempts and items.
	Working
	ItemReader
	Queue
	// Of deposits.
	Uploads
	Batching
	ReportReader
	// Of objects.
	Preserving
	Inventory
	Locking
	Deleting
	Checking
	Restoring
	// Of receivers, and what these and sources ask for.
	Delivering
	DeliveryReader
	Mailing
	Unlocking
	// Ping tells whether the store answers.
	Ping(ctx context.Context) error
}
