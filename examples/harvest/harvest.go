// Command harvest submits what is new in an OAI-PMH source to a collection, each night.
//
// It serves the function harvest. A schedule calls it:
//
//	holdfast token create --role worker --name harvest --stage run:harvest
//	holdfast token create --role depositor --name harvest-deposits --collection maps
//	go run ./examples/harvest -url URL -token WORKER -depositor DEPOSITOR
//	holdfast schedule create nightly --cron "30 2 * * *" --zone Europe/Berlin --function harvest \
//	  --collection maps --args '{"source": "https://example.org/oai", "collection": "maps"}'
//
// A record's payload is the first web address among its dc:identifier. The record's identifier
// becomes the object's local id, so a changed record becomes a new version of its object. What the
// source deletes stays in the archive; the log names it.
//
// After each page the task keeps the source's resumption token, so the next attempt goes on there.
// A page that was harvested in part is harvested again: the key of a submission is made of the
// record's identifier and datestamp, so nothing is submitted twice. The next night starts at the
// time at which the source first answered the last completed harvest.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/task"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/wire"
)

// Source says what to harvest.
type Source struct {
	Source     string `json:"source"` // base address of the source
	Set        string `json:"set,omitempty"`
	Collection string `json:"collection"` // the task must be of this collection, too
}

// Report says what a harvest did.
type Report struct {
	Until     time.Time `json:"until"` // the next harvest starts here
	Records   int64     `json:"records"`
	Submitted int64     `json:"submitted"`
	Known     int64     `json:"known"`   // submitted before
	Deleted   int64     `json:"deleted"` // by the source
	Refused   int64     `json:"refused"` // by Holdfast, or without an address: the log says why
}

// place is how far a harvest has come: the state of its task.
type place struct {
	From  string `json:"from,omitempty"` // "": from the beginning
	Token string `json:"token,omitempty"`
	Report
}

// Archive is what a harvest needs of Holdfast's API.
type Archive interface {
	Submit(ctx context.Context, r wire.SubmitRequest, idempotencyKey string) (wire.SubmitResponse, error)
	Items(ctx context.Context, q registry.ItemQuery) (registry.Page[registry.WorkItem], error)
	Item(ctx context.Context, id string) (registry.WorkItem, error)
}

const name = "harvest"

// slowest is how long a source may take for a page.
const slowest = 5 * time.Minute

// Register registers the function, which submits to an archive.
func Register(m *task.Mux, archive Archive) *task.Function[Source, Report] {
	h := &harvester{archive: archive, http: &http.Client{Timeout: slowest}}
	return task.Handle(m, name, h.harvest, task.Title("Harvest an OAI-PMH source"), task.Attempts(8),
		task.Backoff(time.Minute, 2, time.Hour), task.StuckAfter(2*slowest))
}

type harvester struct {
	archive Archive
	http    *http.Client
}

// harvest is the function. A refusal of the arguments is final; other errors are retried.
func (h *harvester) harvest(ctx context.Context, run *task.Run, s Source) (Report, error) {
	var at place
	begun, err := run.State(&at)
	if err != nil {
		return Report{}, err
	}
	if !begun {
		if at.From, err = h.from(ctx, s); err != nil {
			return Report{}, verdict(err)
		}
		run.Log.InfoContext(ctx, "harvest begins", "from", at.From)
	}
	progress := run.Progress("Records", "records")
	progress.Set(at.Records)
	for {
		page, err := ask(ctx, h.http, s.Source, arguments(s, at))
		var refusal *oaiError
		switch {
		case errors.As(err, &refusal) && refusal.Code == "noRecordsMatch":
			err = nil
		case errors.As(err, &refusal) && refusal.Code == "badResumptionToken" && at.Token != "":
			// Its tokens live for a short time. The keys of the submissions make a repeat harmless.
			run.Log.WarnContext(ctx, "the source has forgotten the resumption token; the harvest starts anew")
			at = place{From: at.From, Report: Report{Until: at.Until}}
			if err := run.SetState(ctx, at); err != nil {
				return Report{}, err
			}
			continue
		}
		if err != nil {
			return Report{}, verdict(err)
		}
		if at.Until.IsZero() {
			at.Until = page.ResponseDate
		}
		for _, r := range page.Records {
			if err := h.record(ctx, run, s, r, &at.Report); err != nil {
				return Report{}, err
			}
			progress.Set(at.Records)
		}
		next := strings.TrimSpace(page.Token)
		if next == "" {
			return at.Report, nil
		}
		if next == at.Token {
			return Report{}, fmt.Errorf("the source %s answers the same resumption token again: %.100q", s.Source, next)
		}
		at.Token = next
		if err := run.SetState(ctx, at); err != nil {
			return Report{}, err
		}
	}
}

// arguments are those of the next request.
func arguments(s Source, at place) url.Values {
	if at.Token != "" {
		return url.Values{"verb": {"ListRecords"}, "resumptionToken": {at.Token}}
	}
	v := url.Values{"verb": {"ListRecords"}, "metadataPrefix": {"oai_dc"}}
	if s.Set != "" {
		v.Set("set", s.Set)
	}
	if at.From != "" {
		v.Set("from", at.From)
	}
	return v
}

// verdict says what follows from an error of a source.
func verdict(err error) error {
	var busy *busyError
	if errors.As(err, &busy) {
		return task.Later(busy.after, "the source is busy")
	}
	var refusal *oaiError
	if errors.As(err, &refusal) && refusal.Code != "badResumptionToken" {
		return task.Invalid(err)
	}
	return err
}

// from returns where the last completed harvest of a source ended, as the source writes times; "" if
// there was none.
func (h *harvester) from(ctx context.Context, s Source) (string, error) {
	who, err := ask(ctx, h.http, s.Source, url.Values{"verb": {"Identify"}})
	if err != nil {
		return "", err
	}
	q := registry.ItemQuery{Action: registry.Task, Stage: registry.Run.Of(name), Status: registry.Completed, Collection: s.Collection, Limit: 100}
	var last time.Time
	for {
		page, err := h.archive.Items(ctx, q)
		if err != nil {
			return "", fmt.Errorf("look for the last harvest: %w", err)
		}
		for _, listed := range page.Rows {
			it, err := h.archive.Item(ctx, listed.ID)
			if errors.Is(err, registry.ErrNotFound) {
				continue // purged
			}
			if err != nil {
				return "", fmt.Errorf("read an earlier harvest: %w", err)
			}
			var spec registry.TaskSpec
			var did Source
			var report Report
			if json.Unmarshal(it.Spec, &spec) == nil && json.Unmarshal(spec.Args, &did) == nil && did == s &&
				json.Unmarshal(it.Results[registry.ResultReturned], &report) == nil && report.Until.After(last) {
				last = report.Until
			}
		}
		if q.After = page.Next; q.After == "" || !last.IsZero() {
			break
		}
	}
	if last.IsZero() {
		return "", nil
	}
	return stamp(last, who.Granularity), nil
}

// record submits a record, and counts it.
func (h *harvester) record(ctx context.Context, run *task.Run, s Source, r record, did *Report) error {
	did.Records++
	id := strings.TrimSpace(r.Header.Identifier)
	if r.Header.Status == "deleted" {
		did.Deleted++
		run.Log.WarnContext(ctx, "the source has deleted a record; the archive keeps it", "record", id)
		return nil
	}
	link := slices.IndexFunc(r.Links, func(l string) bool { return strings.HasPrefix(l, "https://") || strings.HasPrefix(l, "http://") })
	if link < 0 || id == "" {
		did.Refused++
		run.Log.WarnContext(ctx, "a record has no identifier, or no web address", "record", id)
		return nil
	}
	answer, err := h.archive.Submit(ctx, wire.SubmitRequest{
		URL: r.Links[link], Collection: s.Collection, LocalIDs: []string{id},
		Title: first(r.Titles), Creator: first(r.Creators), Date: first(r.Dates),
	}, key(s.Source, id, r.Header.Datestamp))
	var refusal *client.Problem
	switch {
	case errors.As(err, &refusal) && (refusal.Status == http.StatusUnprocessableEntity || refusal.Code == wire.CodeIdempotency):
		did.Refused++
		run.Log.ErrorContext(ctx, "a record was refused", "record", id, "reason", refusal.Error())
	case err != nil:
		return fmt.Errorf("submit record %s: %w", id, err)
	case answer.Duplicate:
		did.Known++
	default:
		did.Submitted++
		run.Log.InfoContext(ctx, "submitted", "record", id, "batch", answer.BatchID)
	}
	return nil
}

// key identifies a state of a record.
func key(source, id, datestamp string) string {
	sum := sha256.Sum256([]byte(source + "\n" + id + "\n" + datestamp))
	return "oai-" + hex.EncodeToString(sum[:])
}

func first(all []string) string {
	if len(all) == 0 {
		return ""
	}
	return strings.TrimSpace(all[0])
}
