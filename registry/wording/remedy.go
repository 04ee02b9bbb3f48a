package wording

import "github.com/holdfast/holdfast/registry"

// Remedy words how to fix items that failed, as a phrase. It returns "" for a remedy that advises nothing, or of a kind
// that this program does not know.
func Remedy(w Words, r registry.Remedy) string {
	text := advice(w, r)
	if text == "" {
		return ""
	}
	switch {
	case r.Anew == "":
	case !r.Mended && r.Anew == registry.AnewAlone:
		text = w.T("%s, and submits this deposit alone", text)
	case !r.Mended:
		text = w.T("%s, and submits it again", text)
	case r.From == "" && r.Anew == registry.AnewAlone:
		text = w.T("%s; if it is mended at its address, an admin requeues the item, for anything else the producer submits this deposit alone", text)
	case r.From == "":
		text = w.T("%s; if it is mended at its address, an admin requeues the item, for anything else the producer submits it again", text)
	case r.Anew == registry.AnewAlone:
		text = w.T("%s; if it is mended at its address, an admin requeues the item from %s, for anything else the producer submits this deposit alone", text, w.Stage(r.From))
	default:
		text = w.T("%s; if it is mended at its address, an admin requeues the item from %s, for anything else the producer submits it again", text, w.Stage(r.From))
	}
	if r.Abandon {
		text = w.T("%s; if its version can never be completed, two admins abandon it", text)
	}
	return text
}

// advice words what is to be done first.
func advice(w Words, r registry.Remedy) string {
	switch r.Advice {
	case registry.AdviceRequeueOrNothing:
		return w.T("nothing, or an admin requeues it")
	case registry.AdvicePreserved:
		return w.T("nothing: its object is preserved")
	case registry.AdviceSubmitOrNothing:
		return w.T("nothing, or the producer submits it again")
	case registry.AdviceTaskOrNothing:
		return w.T("nothing, or submit the task again")
	case registry.AdviceRepairProcess:
		return w.T("repair or retry its process, if that is in error still")
	case registry.AdviceArguments:
		return w.T("correct what its arguments name, then requeue the task; if the arguments are wrong, submit another one")
	case registry.AdviceRow:
		return w.T("the producer corrects the row and submits it alone, in a new batch")
	case registry.AdviceVersionAgain:
		return w.T("an admin requeues the item to make the version again, or deletes it")
	case registry.AdviceRequeueJobs:
		return w.T("requeue the failed jobs, then ask the batch for an updated report")
	case registry.AdviceProfile:
		return w.T("an admin corrects the profile of the collection, then the producer submits this deposit alone")
	case registry.AdviceCallback:
		return w.T("%s, or correct the callback of the collection, then requeue the item; or give the delivery up: the object is preserved", w.Said(r.Text))
	case registry.AdviceKnown:
		return w.T("%s, then requeue the item", w.Said(r.Text))
	case registry.AdviceFindCause:
		return w.T("an admin finds the cause and requeues the item")
	}
	return producer(w, r.Advice)
}

// producer words what the producer does before submitting again.
func producer(w Words, a registry.Advice) string {
	switch a { //nolint:exhaustive // the others are no acts of a producer
	case registry.AdviceDigest:
		return w.T("the producer compares the file with the original, corrects the file or its digest")
	case registry.AdviceSize:
		return w.T("the producer compares the file with the original, corrects the file or its size")
	case registry.AdvicePack:
		return w.T("the producer packs the container again")
	case registry.AdviceDeposit:
		return w.T("the producer corrects the deposit")
	case registry.AdviceAlgorithm:
		return w.T("the producer gives a digest by sha256 or sha512")
	case registry.AdvicePut:
		return w.T("the producer puts the file there, then an admin requeues the item; if the address is wrong, the producer corrects it")
	case registry.AdviceIdentifier:
		return w.T("the producer corrects the ARK or the local id")
	case registry.AdviceUpdate:
		return w.T("the producer corrects the identifier, or submits without update")
	}
	return ""
}

// RemedyForProducer is Remedy as it is told to the producer.
func RemedyForProducer(w Words, r registry.Remedy) string { return Remedy(toProducer{w}, r) }

// toProducer words what the producer does as something that the reader does.
type toProducer struct{ Words }

// T implements Words.
func (w toProducer) T(key string, args ...any) string {
	if own, ok := producersOwn[key]; ok {
		key = own
	}
	return w.Words.T(key, args...)
}

// producersOwn are the texts that name the producer, as they are told to the producer.
var producersOwn = map[string]string{
	"%s, and submits this deposit alone": "%s, and deposit this object alone",
	"%s, and submits it again":           "%s, and deposit it again",
	"%s; if it is mended at its address, an admin requeues the item, for anything else the producer submits this deposit alone":         "%s; if you mend it at its address, ask an admin to requeue the item, for anything else deposit this object alone",
	"%s; if it is mended at its address, an admin requeues the item, for anything else the producer submits it again":                   "%s; if you mend it at its address, ask an admin to requeue the item, for anything else deposit it again",
	"%s; if it is mended at its address, an admin requeues the item from %s, for anything else the producer submits this deposit alone": "%s; if you mend it at its address, ask an admin to requeue the item from %s, for anything else deposit this object alone",
	"%s; if it is mended at its address, an admin requeues the item from %s, for anything else the producer submits it again":           "%s; if you mend it at its address, ask an admin to requeue the item from %s, for anything else deposit it again",
	"nothing, or the producer submits it again":                                                                            "nothing, or you deposit it again",
	"the producer corrects the row and submits it alone, in a new batch":                                                   "correct the row and deposit it alone, in a new batch",
	"an admin corrects the profile of the collection, then the producer submits this deposit alone":                        "an admin corrects the profile of the collection, then you deposit this object alone",
	"the producer compares the file with the original, corrects the file or its digest":                                    "compare the file with the original, correct the file or its digest",
	"the producer compares the file with the original, corrects the file or its size":                                      "compare the file with the original, correct the file or its size",
	"the producer packs the container again":                                                                               "pack the container again",
	"the producer corrects the deposit":                                                                                    "correct the deposit",
	"the producer gives a digest by sha256 or sha512":                                                                      "give a digest by sha256 or sha512",
	"the producer puts the file there, then an admin requeues the item; if the address is wrong, the producer corrects it": "put the file there, then ask an admin to requeue the item; if the address is wrong, correct it",
	"the producer corrects the ARK or the local id":                                                                        "correct the ARK or the local id",
	"the producer corrects the identifier, or submits without update":                                                      "correct the identifier, or submit without update",
}
