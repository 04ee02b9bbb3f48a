package base

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
)

// How long an item waits if the Registry does not wake it earlier, which it normally does.
const (
	lockedWait  = time.Minute
	noSpaceWait = time.Minute
)

// outageWait is how long an item waits after the Registry did not answer its step.
const outageWait = 5 * time.Second

// errorLimit is how many bytes of an error's text are recorded (R10).
const errorLimit = 2000

// Content blames the deposit for err: the item fails, and the producer must correct it.
// Content(nil) is nil.
func Content(err error) error {
	if err == nil {
		return nil
	}
	return &contentError{err}
}

// Fatal says that no retry can help although the deposit is not at fault: the item fails and needs
// an admin's review. Fatal(nil) is nil.
func Fatal(err error) error {
	if err == nil {
		return nil
	}
	return &fatalError{err}
}

// Snooze makes the item wait for at least d: it becomes pending again, uncounted. People see the
// reason as a code, and why as a sentence.
func Snooze(d time.Duration, reason registry.Reason, why string) error {
	return &snoozeError{delay: max(d, 0), reason: reason, why: why}
}

// Await is Snooze for an error that passes by itself, or by following its Remedy. It waits longer
// than d if the error asks for that. Await(d, reason, nil) is nil.
func Await(d time.Duration, reason registry.Reason, err error) error {
	if err == nil {
		return nil
	}
	return &snoozeError{delay: max(d, asksToWait(err)), reason: reason, why: err.Error(), err: err}
}

// IsSnooze reports whether an error is one of Snooze or Await.
func IsSnooze(err error) bool {
	_, ok := errors.AsType[*snoozeError](err)
	return ok
}

// Back sends the item back to an earlier stage, because the system has since spoilt what that stage
// left. It is counted: the item fails when that was tried MAX_ATTEMPTS times. Back(stage, nil) is
// nil.
func Back(stage registry.Stage, err error) error {
	if err == nil {
		return nil
	}
	return &backError{stage, err}
}

type backError struct {
	stage registry.Stage
	err   error
}

func (e *backError) Error() string { return e.err.Error() }
func (e *backError) Unwrap() error { return e.err }

type contentError struct{ err error }

func (e *contentError) Error() string      { return e.err.Error() }
func (e *contentError) Unwrap() error      { return e.err }
func (e *contentError) ContentFault() bool { return true }

type fatalError struct{ err error }

func (e *fatalError) Error() string { return e.err.Error() }
func (e *fatalError) Unwrap() error { return e.err }

type snoozeError struct {
	delay  time.Duration
	reason registry.Reason
	why    string
	err    error // or nil
}

func (e *snoozeError) Error() string { return e.why }
func (e *snoozeError) Unwrap() error { return e.err }

// judge returns the settlement for a step's error and the cause of its context (nil while that
// lives). ok is false if the claim is lost and nothing may be written.
func judge(h Handler, item *Item, err, cause error) (s registry.Settlement, ok bool) {
	s = registry.Settlement{Lease: item.lease, MaxAttempts: h.MaxAttempts(), Error: cleanText(err)}
	if errors.Is(err, errLost) || errors.Is(cause, errLost) {
		return s, false
	}
	s.Remedy = clean(remedy(err))
	s.Code, s.Host = causeOf(err)
	if err == nil {
		s.Outcome = registry.OutcomeDone // also if its context ended too late to matter
		return s, true
	}
	// A step whose context ended may mistake its interruption for a fault of what it was reading. A
	// real fault shows again at the next attempt (I8).
	switch {
	case errors.Is(cause, ErrStuck):
		retry(&s, h, item, nil)
		s.Error, s.Code, s.Host = cleanText(fmt.Errorf("%w for %v: %w", ErrStuck, h.StuckAfter(), err)), "stuck", ""
		return s, true
	case cause != nil:
		s.Outcome, s.Error, s.Remedy, s.Code, s.Host = registry.OutcomeReleased, ErrStopping.Error(), "", "", ""
		return s, true
	}
	var (
		back    *backError
		fatal   *fatalError
		snooze  *snoozeError
		locked  *registry.LockedError
		noSpace *registry.NoSpaceError
	)
	switch {
	case ContentFault(err):
		s.Outcome, s.Class = registry.OutcomeFailed, registry.ContentFault
	case errors.As(err, &back):
		s.Outcome, s.Class, s.Back = registry.OutcomeSentBack, registry.SystemFault, back.stage
	case errors.As(err, &fatal):
		s.Outcome, s.Class = registry.OutcomeFailed, registry.SystemFault
	case waitsForRoom(err) && h.base().OutOfRoom(item, err):
		s.Outcome, s.Class, s.Code, s.Remedy = registry.OutcomeFailed, registry.SystemFault, "no-room", roomRemedy
		why := fmt.Sprintf("waited %v for room, which is the limit (HOLDFAST_ROOM_WAIT)", item.RoomWait.Round(time.Second))
		if neverFits(err) {
			why = "is larger than what the staging volume may be filled to"
		}
		s.Error = cleanText(fmt.Errorf("%s: %w", why, err))
	case errors.As(err, &snooze):
		s.Outcome, s.Delay, s.Reason = registry.OutcomeSnooze, snooze.delay, snooze.reason
	case errors.As(err, &locked):
		s.Outcome, s.Delay, s.Reason = registry.OutcomeSnooze, lockedWait, registry.ReasonLocked
	case errors.As(err, &noSpace), errors.Is(err, storage.ErrNoSpace):
		// Also of a volume that another program has filled: room comes back, and no deposit may
		// fail for want of it (I8).
		s.Outcome, s.Delay, s.Reason = registry.OutcomeSnooze, noSpaceWait, registry.ReasonNoSpace
	case errors.Is(err, registry.ErrUnavailable):
		// The step could not reach the Registry: no fault of the item, and over when the Registry
		// is back.
		s.Outcome, s.Delay, s.Reason = registry.OutcomeSnooze, outageWait, registry.ReasonNotDue
	default:
		retry(&s, h, item, err)
	}
	return s, true
}

// roomRemedy says how to help an item that has waited too long for room.
const roomRemedy = "free room on the staging volume (`holdfast upload list --all`, aborting what failed and is not needed), enlarge it, or set HOLDFAST_ROOM_WAIT higher"

// waitsForRoom reports whether a step failed because a volume has no room for it.
func waitsForRoom(err error) bool {
	snooze, ok := errors.AsType[*snoozeError](err)
	return ok && snooze.reason == registry.ReasonNoSpace || errors.As(err, new(*registry.NoSpaceError)) || errors.Is(err, storage.ErrNoSpace)
}

// OutOfRoom reports whether an item without room fails instead of waiting longer: it has waited as
// long as it may, or can never fit. That is a system fault: nothing is wrong with the deposit.
func (w *Worker) OutOfRoom(item *Item, err error) bool {
	return neverFits(err) || w.RoomFor > 0 && item.RoomWait >= w.RoomFor
}

// neverFits reports whether the item is too large even for an empty volume.
func neverFits(err error) bool {
	full, ok := errors.AsType[*registry.NoSpaceError](err)
	return ok && full.Never
}

// retry makes s a counted failure, also for a call that was cancelled elsewhere. If a service asks
// for a wait (Retry-After), the delay is at least that: an earlier retry would only use up the
// tries.
func retry(s *registry.Settlement, h Handler, item *Item, err error) {
	s.Outcome, s.Class, s.Delay = registry.OutcomeRetry, registry.SystemFault, h.Backoff(item.Tries+1)
	if wait := asksToWait(err); wait > 0 {
		// Only longer, never shorter, and varied: items that failed together must not return
		// together.
		s.Delay = max(s.Delay, wait+rand.N(max(wait/10, time.Second)))
	}
}

// cleanText returns an error's text as clean makes it; "" for nil.
func cleanText(err error) string {
	if err == nil {
		return ""
	}
	return clean(err.Error())
}

// clean makes a text fit for every database and reader: valid UTF-8 without NUL, of at most
// errorLimit bytes.
func clean(text string) string {
	const more = "…"
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	if len(text) <= errorLimit {
		return text
	}
	cut := errorLimit - len(more)
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + more
}
