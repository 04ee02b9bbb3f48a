package lang

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// Refusal is what a problem of the API says to a reader.
type Refusal struct {
	Text    string // in the reader's language, by the problem's code and its facts
	English string // what Text does not say; "" if it says all
	Known   Known  // of English
}

// Refusal words a problem, unless its detail is in the reader's language. In English that says most.
func (t Texts) Refusal(p *wire.Problem) Refusal { return t.RefusalIn(plain{t}, p) }

// RefusalIn is Refusal with the parts of Text shown by words.
func (t Texts) RefusalIn(words Words, p *wire.Problem) Refusal {
	if t.Tag == "en" || p.Worded {
		return Refusal{Text: p.Detail}
	}
	if text := t.ofCause(words, p); text != "" {
		return Refusal{Text: text}
	}
	detail := p.Detail
	if cause := p.Cause.Err(); cause != nil && !errors.Is(cause, registry.ErrNotFound) {
		// Before the cause stands in which of its steps the Registry met it.
		if _, after, ok := strings.Cut(detail, cause.Error()); ok {
			detail = cause.Error() + after
		}
	}
	text, how := t.SaidIn(words, detail)
	if how == Whole {
		return Refusal{Text: text}
	}
	return Refusal{Text: t.ofCode(p), English: detail, Known: how}
}

// ofCause words a problem whose facts say all; "" if they do not.
func (t Texts) ofCause(words Words, p *wire.Problem) string {
	var transition *registry.TransitionError
	switch {
	case errors.As(p, &transition) && transition.Short() != "":
		text, _ := t.SaidIn(words, transition.Short())
		return text + "; " + t.allowed(p.AllowedActs)
	case p.Code == wire.CodeNotAccepting && p.Accepting != nil && p.Accepting.Reason != "":
		return t.T("deposits are not accepted at present, by decision of %s: %s", words.Data(p.Accepting.Actor), words.Data(p.Accepting.Reason))
	case p.Code == wire.CodeInvalid && len(p.Faults) > 0:
		return t.T("nothing was done: a value is not valid")
	case p.Code == wire.CodeContentInvalid && len(p.Faults) > 0, // which are listed
		p.Code == wire.CodeNotFound && len(p.Faults) == 0: // what the page's address names
		return t.ofCode(p)
	case errors.Is(p, registry.ErrSamePerson):
		return t.T("another person must approve it, with a token that neither person made for the other")
	case errors.Is(p, registry.ErrScheduleChanged):
		return t.T("somebody else changed the schedule meanwhile; load the page again, then repeat the edit")
	}
	return ""
}

// ofCode words a problem by its code alone; "" for a code that says little.
func (t Texts) ofCode(p *wire.Problem) string {
	switch p.Code {
	case wire.CodeBadRequest, wire.CodeInvalid, wire.CodeGraph:
		return t.T("a value is not valid")
	case wire.CodeUnauthenticated:
		return t.T("you are not signed in")
	case wire.CodeForbidden:
		return t.T("you may not do this")
	case wire.CodeEmbargo:
		return t.T("the files are under embargo")
	case wire.CodeCrossOrigin:
		return t.T("the request came from a page of another site")
	case wire.CodeNotFound:
		return t.T("it does not exist, or not any more")
	case wire.CodeTransition, wire.CodePastNoReturn:
		return t.allowed(p.AllowedActs)
	case wire.CodeConfirm:
		return t.T("this has consequences for others; confirm it to go on")
	case wire.CodeConflict, wire.CodeVersion:
		return t.T("its present state does not allow this; something has changed meanwhile")
	case wire.CodeNameTaken:
		return t.T("this name is taken")
	case wire.CodeLastAdmin:
		return t.T("without this token nobody could create another; nothing was revoked")
	case wire.CodeGone:
		return t.T("the object was deleted")
	case wire.CodeTooLarge:
		return t.T("it is larger than allowed")
	case wire.CodeContentInvalid:
		return t.T("the payload is not right; correct what is listed, and submit it again")
	case wire.CodeDigestMismatch, wire.CodeChecksum:
		return t.T("the bytes do not have the given digest")
	case wire.CodeEmptyUpload:
		return t.T("the file is empty")
	case wire.CodeBusy:
		return t.T("another request is writing to the same upload")
	case wire.CodeTooManyAttempts, wire.CodeMailLimit:
		return t.T("this was asked too often; wait, then try again")
	case wire.CodeQuota:
		return t.T("your share of the room for uploads is used up")
	case wire.CodeNoSpace:
		return t.T("there is no room left")
	case wire.CodeNotAccepting:
		return t.T("deposits are not accepted at present")
	case wire.CodeJudging:
		return t.T("the payload is still being checked; try again soon")
	case wire.CodeInternal, wire.CodeUnavailable:
		return t.T("Holdfast failed to answer; try again later")
	case wire.CodeDamaged:
		return t.T("preserved content differs from its record, or cannot be read")
	default:
		return ""
	}
}

// allowed says that an item's state does not allow an act, and what it allows.
func (t Texts) allowed(acts []registry.Act) string {
	names := make([]string, len(acts))
	for i, act := range acts {
		names[i] = t.T(fmt.Sprint(act))
	}
	if len(names) == 0 {
		return t.T("the present state of the item does not allow this, nor any other act")
	}
	return t.T("the present state of the item does not allow this; it allows: %s", strings.Join(names, ", "))
}

// Sentence makes the first letter a capital, and adds a full stop where there is none. No text stays
// no text.
func Sentence(text string) string {
	if text == "" {
		return ""
	}
	first, size := utf8.DecodeRuneInString(text)
	text = string(unicode.ToUpper(first)) + text[size:]
	if !strings.ContainsAny(text[len(text)-1:], ".!?") {
		text += "."
	}
	return text
}
