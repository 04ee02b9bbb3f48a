package registrytest

import (
	"slices"

	"github.com/holdfast/holdfast/registry"
)

// Receiver returns a callback to an address where no server answers.
func Receiver() *registry.Callback { return &registry.Callback{URL: "https://receiver.test/mc/{job}"} }

// SubmitWithCallback submits a batch while its collection has a callback, and then removes the callback.
func (f *Fixture) SubmitWithCallback(callback *registry.Callback) string {
	f.Helper()
	before, err := f.Store.Collection(f.Context(), Mnemonic)
	f.Must(err)
	told := before.Profile
	told.Callback = callback
	f.Collection(Mnemonic, told)
	id := f.Submit()
	f.Collection(Mnemonic, before.Profile)
	return id
}

// JobWithCallback makes a job with a callback and brings it to a stage.
func (f *Fixture) JobWithCallback(callback *registry.Callback, at registry.Stage) string {
	f.Helper()
	id := f.SubmitWithCallback(callback)
	c := f.TakeItem(id)
	_, err := f.Store.AddJobs(f.Context(), c.Lease, NewJobs(1))
	f.Must(err)
	f.Done(c.Lease)
	jobs := f.All(registry.ItemQuery{ParentID: id})
	f.Bring(jobs[0].ID, at)
	return jobs[0].ID
}

// CompletedMessage returns the message of a job's notify step.
func CompletedMessage(id string) registry.DeliverySpec {
	return registry.DeliverySpec{Subject: id, State: registry.StateCompleted, Callback: *Receiver()}
}

// NoteDelivery records a receiver's answer to a message.
func (f *Fixture) NoteDelivery(l registry.Lease, m registry.DeliverySpec, status int, text string) registry.Delivery {
	f.Helper()
	d, err := f.Store.NoteDelivery(f.Context(), l, registry.DeliveryTry{Message: m, Status: status, Error: text})
	f.Must(err)
	return d
}

// Deliveries returns the deliveries about an item.
func (f *Fixture) Deliveries(id string) []registry.Delivery {
	f.Helper()
	all, err := f.Store.Deliveries(f.Context(), id)
	f.Must(err)
	return all
}

// DeliveryItems returns the items that deliver messages.
func (f *Fixture) DeliveryItems() []registry.WorkItem {
	f.Helper()
	return f.All(registry.ItemQuery{Action: registry.DeliverMessage})
}

// Mails lists the mails about an item: the kind, the address, and for reports the closing and
// state.
func (f *Fixture) Mails(id string) (out []string) {
	f.Helper()
	for _, d := range f.Deliveries(id) {
		spec, ok := registry.DeliverySpecIn(f.Item(d.ItemID).Spec)
		if !ok || spec.ID() != d.ID || d.Target != spec.To || d.Kind != "mail-"+string(spec.Mail) || d.Subject != id || d.State != spec.State {
			f.Errorf("delivery %+v by item %+v", d, spec)
		}
		text := string(spec.Mail) + " " + spec.To
		if spec.Closing > 0 {
			text += " " + string(rune('0'+spec.Closing)) + " " + string(spec.State)
		}
		out = append(out, text)
	}
	slices.Sort(out)
	return out
}

// Notifying adds addresses to a submission.
func Notifying(to ...string) func(*registry.Submission) {
	return func(s *registry.Submission) { s.Spec.Notify = to }
}
