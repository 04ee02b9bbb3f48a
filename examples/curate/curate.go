// Command curate keeps a process for each object that waits for a curator's decision. It reminds the
// curator, and it submits the new version when the curator has accepted it.
//
// Make a token for the program and one that may submit, and start the program:
//
//	holdfast token create --name curate --role worker --stage step:curation
//	holdfast token create --name curate-submit --role depositor --collection maps
//	go run ./examples/curate -url URL -token WORKER -submit-token DEPOSITOR
//
// Ask for a decision, and give it:
//
//	holdfast process init curation ark:/99999/fk4x --args '{"url": "https://example.org/atlas.zip",
//	  "collection": "maps", "title": "Atlas", "curator": "ada"}'
//	holdfast process call curation ark:/99999/fk4x --args '{"decision": "accept", "note": "well done"}'
//
// The id of the process is the object's ARK. So an object waits for one decision at a time:
//
//	holdfast process list --namespace curation
//
// The program can be stopped and started at any time, and more than one may run. See
// docs/tasks.md, Processes.
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast/holdfast/process"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/task"
	"github.com/holdfast/holdfast/web/wire"
)

// Namespace is the namespace of the processes.
const Namespace = "curation"

// Request is the argument of the first step: a version that somebody wants to add to an object.
type Request struct {
	URL        string `json:"url"` // of the payload
	Collection string `json:"collection"`
	Title      string `json:"title,omitempty"`
	Curator    string `json:"curator"` // who decides
}

// Decision is the argument of a call.
type Decision struct {
	Decision string `json:"decision"` // accept or reject
	Note     string `json:"note,omitempty"`
}

// Answer is what a call returns.
type Answer struct {
	Taken   bool   `json:"taken"` // the decision counts
	Message string `json:"message"`
}

// State is what the program knows of a process.
type State struct {
	Request  Request `json:"request"`
	Accepted bool    `json:"accepted,omitempty"`
	Reminded int     `json:"reminded,omitempty"` // how often
}

// Event is an entry of a process's history.
type Event struct {
	What  string `json:"what"` // asked, reminded, accepted, rejected or submitted
	By    string `json:"by,omitempty"`
	Note  string `json:"note,omitempty"`
	Batch string `json:"batch,omitempty"`
}

// Submitter submits payloads, as web/client does.
type Submitter interface {
	Submit(ctx context.Context, s wire.SubmitRequest, idempotencyKey string) (wire.SubmitResponse, error)
}

// Program has what the steps need.
type Program struct {
	Submit Submitter
	// Remind tells a curator of an object that waits. A reminder may be sent twice, if the program
	// dies after it.
	Remind func(ctx context.Context, curator, ark string) error
	Every  time.Duration // between two reminders
}

// Register lets a program serve the processes. Its timers are tried 10 times, since they only call
// others, which may be down for a while.
func (p *Program) Register(m *task.Mux) {
	process.Handle(m, Namespace, p.step, process.Title("Wait for a curator's decision"), process.Attempts(10))
}

// step does one step. Only the timers' steps call others: the error of a call is not tried again.
func (p *Program) step(ctx context.Context, s *process.Step[State]) error {
	switch s.Kind {
	case registry.StepInit:
		return p.ask(s)
	case registry.StepCall:
		return p.decide(s)
	case registry.StepTimeout:
		if s.State.Accepted {
			return p.submit(ctx, s)
		}
		return p.remind(ctx, s)
	case registry.StepRepair:
		if s.State.Request.URL == "" { // the first step failed: the repair brings what it lacked
			return p.ask(s)
		}
	case registry.StepRemove:
	}
	return nil
}

func (p *Program) ask(s *process.Step[State]) error {
	r := &s.State.Request
	if err := s.Args(r); err != nil {
		return err
	}
	if r.URL == "" || r.Curator == "" {
		return task.Invalid(fmt.Errorf("%s: the request needs url and curator", s.ProcessKey))
	}
	s.SetMetadata(map[string]string{"title": r.Title, "curator": r.Curator})
	s.Event(Event{What: "asked", By: s.Actor})
	s.ContinueIn(p.Every)
	return nil
}

// decide takes the decision. What is wrong with it is an answer, not an error: an error would put the
// process into error.
func (p *Program) decide(s *process.Step[State]) error {
	var d Decision
	if err := s.Args(&d); err != nil {
		s.Respond(Answer{Message: err.Error()})
		return nil //nolint:nilerr // the caller gets it
	}
	switch {
	case s.State.Request.URL == "":
		s.Respond(Answer{Message: "nothing was asked for; remove the process, and start it again"})
	case s.State.Accepted:
		s.Respond(Answer{Message: "it is accepted already"})
	case d.Decision == "accept":
		s.State.Accepted = true
		s.Event(Event{What: "accepted", By: s.Actor, Note: d.Note})
		s.Continue(time.Time{}) // submit it now
		s.Respond(Answer{Taken: true, Message: "the new version is being submitted"})
	case d.Decision == "reject":
		s.Event(Event{What: "rejected", By: s.Actor, Note: d.Note})
		s.Done()
		s.Respond(Answer{Taken: true, Message: "nothing is submitted"})
	default:
		s.Respond(Answer{Message: fmt.Sprintf("the decision is accept or reject, not %q", d.Decision)})
	}
	return nil
}

func (p *Program) remind(ctx context.Context, s *process.Step[State]) error {
	if err := p.Remind(ctx, s.State.Request.Curator, s.ProcessID); err != nil {
		return err
	}
	s.State.Reminded++
	s.Event(Event{What: "reminded"})
	s.ContinueIn(p.Every)
	return nil
}

// submit submits the new version and ends the process. The key of the request is the step: if the
// program dies after the request, the next attempt gets the same batch.
func (p *Program) submit(ctx context.Context, s *process.Step[State]) error {
	r := s.State.Request
	b, err := p.Submit.Submit(ctx, wire.SubmitRequest{URL: r.URL, Collection: r.Collection, Title: r.Title, ARK: s.ProcessID}, "curate:"+s.ItemID)
	if err != nil {
		return err
	}
	s.Event(Event{What: "submitted", Batch: b.BatchID})
	s.Done()
	return nil
}
