// Package bounds limits what workers may send to the Registry: each number, text and list in the
// arguments of registry.ForWorkers. Methods that write or search call [Check] first. So a leaked
// secret cannot take room or slots from others, and no sum of workers' numbers overflows.
//
// The bounds are far above what workers send; they refuse no deposit. Which data an attempt may
// name depends on its item, so the subjects check that in their transactions. The package knows the
// Registry's types and no database.
package bounds

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// The bounds that package registry does not define itself.
const (
	mostDelay    = 24 * time.Hour          // a step delays its item by an hour at most, even if a source asks for more
	mostKeep     = 36_500 * 24 * time.Hour // as HOLDFAST_RESTORE_DAYS
	mostSlots    = 2_000                   // slots of a worker in a stage: HOLDFAST_CONCURRENCY is at most 1,000, plus half as many spare ones
	mostAttempts = 1_000                   // as HOLDFAST_MAX_ATTEMPTS
	mostLater    = 100                     // a step lowers its item's priority by 10 at most
	mostLine     = 1 << 40                 // line of a manifest
	mostRoom     = 1 << 56                 // bytes that an item reserves, or has, on a volume
	mostItem     = 1 << 50                 // bytes, or files, of an item; estimate treats more as unknown
	mostPadding  = 18                      // digits
	mostObject   = 1 << 56                 // bytes, or files, of a version
	mostCount    = 1 << 40                 // versions, requeues and closings
	mostFactor   = 1_000                   // by which waits grow

	mostName    = 4 << 10   // bytes of an id, a version, a code: values made by Holdfast itself
	mostPath    = 256 << 10 // bytes of a path: names have up to 64 KiB and may be escaped
	mostText    = 4 << 20   // bytes of a text from a depositor or server: metadata files can have that many
	mostTelling = 8 << 20   // bytes of an event's data: a thousand faults

	mostTexts  = 100_000   // local ids, collections
	mostBeats  = 100_000   // attempts of a process
	mostFiles  = 1_000     // rows of the inventory in a call (R25)
	mostJobs   = 500       // rows of a batch in a call (R25)
	mostEvents = 2_000_000 // preservation events of a version: one for each file name in another encoding
	mostTold   = 100       // events of an attempt
	mostMade   = 100       // results, measures, stages and storages of a step, digests of a file, terms of a query
)

// bound limits the value of a field.
type bound struct {
	least, most int64 // of a number, or of each number in a list
	text        int   // bytes of a text, or of each in a list
	list        int   // entries of a list
	judged      bool  // false: the field is not checked, because the Registry replaces it
}

func number(least, most int64) bound     { return bound{least: least, most: most, judged: true} }
func text(most int) bound                { return bound{text: most, judged: true} }
func list(most int) bound                { return bound{list: most, judged: true} }
func texts(most, each int) bound         { return bound{list: most, text: each, judged: true} }
func numbers(most int, each bound) bound { each.list = most; return each }

var (
	name  = text(mostName)
	any64 = number(math.MinInt64, math.MaxInt64) // a cursor, or a number that is only looked up, shown or cut
	size  = number(-1, mostItem)                 // -1: unknown or unchanged
	count = number(0, mostCount)
	slots = numbers(mostMade, number(0, mostSlots))
	// replaced marks fields whose value from a worker the Registry ignores.
	replaced = bound{}
)

// bounds has the bound of each field of all arguments, by type and field name. TestEveryField fails
// if one is missing.
var bounds = map[string]bound{
	"Lease.ItemID": name, "Lease.N": any64,

	"ClaimRequest.RequestID": name, "ClaimRequest.Stage": name, "ClaimRequest.Hint": name, "ClaimRequest.Worker": name, "ClaimRequest.Version": name,
	"ClaimRequest.Lease": number(0, int64(registry.MostLease)), "ClaimRequest.MaxAttempts": number(0, mostAttempts), "ClaimRequest.StuckAfter": number(0, int64(registry.MostStuck)),

	"RenewRequest.Lease": number(0, int64(registry.MostLease)), "RenewRequest.Beats": list(mostBeats),
	"WorkerInfo.ID": name, "WorkerInfo.Version": name, "WorkerInfo.Capacity": slots, "WorkerInfo.Free": slots, "WorkerInfo.Spare": slots, "WorkerInfo.Running": replaced, "WorkerInfo.LeaseSeconds": replaced,
	"WithdrawnQuery.Worker": name, "WithdrawnQuery.After": any64,
	"Beat.Progress": list(mostMade), "Beat.Log": list(registry.MostLogLines), "Beat.DoneBytes": size, "Beat.DoneFiles": size,
	"LogLine.N": replaced, "LogLine.Seq": number(1, mostCount), "LogLine.Level": name, "LogLine.Text": text(mostName), "LogLine.Dropped": replaced,
	"Progress.Title": name, "Progress.Unit": name, "Progress.Start": any64, "Progress.Position": any64, "Progress.End": any64,

	"Settlement.Outcome": name, "Settlement.Delay": number(0, int64(mostDelay)), "Settlement.Reason": name, "Settlement.Back": name,
	"Settlement.Error": text(mostText), "Settlement.Remedy": text(mostText), "Settlement.Class": name, "Settlement.Code": name, "Settlement.Host": name,
	"Settlement.MaxAttempts": number(0, mostAttempts), "Settlement.Results": texts(mostMade, registry.MostResult),
	"Settlement.SizeBytes": size, "Settlement.Files": size, "Settlement.DoneBytes": size, "Settlement.DoneFiles": size,
	"Settlement.PriorityAdd": number(0, mostLater), "Settlement.Progress": list(mostMade), "Settlement.Events": list(mostTold), "Settlement.Log": list(registry.MostLogLines),
	"NewEvent.Type": name, "NewEvent.Data": text(mostTelling),

	"Function.Name": name, "Function.Title": text(mostText), "Function.Args": text(registry.MostSchema), "Function.Result": text(registry.MostSchema),
	"FunctionPolicy.MaxAttempts": number(0, mostAttempts), "FunctionPolicy.First": number(0, int64(mostDelay)), "FunctionPolicy.Factor": number(0, mostFactor),
	"FunctionPolicy.Most": number(0, int64(mostDelay)), "FunctionPolicy.AtOnce": number(0, registry.MostLimit),
	"NewTask.Function": name, "NewTask.Args": text(registry.MostArgs), "NewTask.Title": text(mostName), "NewTask.Subject": text(mostName), "NewTask.Collection": name,
	"NewTask.Priority": number(0, registry.MostPriority), "NewTask.Requires": list(registry.MostEdges), "NewTask.Cause": name, "NewTask.Actor": name, "NewTask.IdempotencyKey": name,
	"Namespace.Name": name, "Namespace.Title": text(mostText), "NamespacePolicy.Final": texts(mostMade, mostName), "NamespacePolicy.StepTime": number(0, int64(registry.MostStuck)),
	"HistoryRange.Offset": count, "HistoryRange.Limit": count,
	"Requirement.Key": name, "Requirement.ItemID": name, "Requirement.WaitFor": name,

	"NewJob.Line": number(1, mostLine), "NewJob.Row": number(0, mostLine), "NewJob.Name": text(mostText), "NewJob.Priority": number(registry.LeastPriority, registry.MostPriority),
	"NewJob.Fault": text(mostText), "NewJob.Class": name, "NewJob.Code": name,
	"Spec.RouteVersion": replaced, "Spec.Type": name, "Spec.Mode": replaced, "Spec.URL": text(mostText), "Spec.Filename": text(mostText), "Spec.SizeBytes": any64,
	"Spec.PrimaryID": text(mostText), "Spec.LocalIDs": texts(mostTexts, mostText), "Spec.Submitter": replaced, "Spec.UserAgent": replaced,
	"Spec.Title": text(mostText), "Spec.Creator": text(mostText), "Spec.Date": text(mostText), "Spec.Notify": replaced, "Spec.Priority": replaced,
	"Spec.Terms": replaced, "Spec.Profile": replaced, "Spec.ProfileVersion": replaced, "Trace.Parent": name, "Trace.Batch": name, "Corrects.BatchID": name, "Corrects.Rows": count, "Corrects.Lines": list(registry.MostLineRanges), "LineRange.First": any64, "LineRange.Last": any64,
	"Digest.Algorithm": text(mostText), "Digest.Value": text(mostText), "RowPlace.Row": any64, "RowPlace.Line": any64,

	"Reservation.Volume": name, "Reservation.Bytes": number(0, mostRoom), "Reservation.Used": number(0, math.MaxInt64), "Reservation.Total": number(0, math.MaxInt64),
	"Reservation.Threshold": number(0, 1), "Reservation.Staged": number(0, mostRoom),

	"IdentifyRequest.Owner": text(mostText), "IdentifyRequest.Supplied": text(mostText), "IdentifyRequest.LocalIDs": texts(mostTexts, mostText),
	"IdentifyRequest.Proposed": name, "IdentifyRequest.Refused": text(mostText), "IdentifyRequest.Folders": texts(mostMade, mostText),
	"Intent.ObjectID": text(mostText), "Intent.Version": count, "Intent.Plan": text(registry.MostResult), "Intent.Staged": text(mostText), "Intent.Forget": texts(mostMade, mostName),
	"File.Path": text(mostPath), "File.Version": count, "File.ContentPath": text(mostPath), "File.SizeBytes": number(0, mostObject),
	"File.Digests": texts(mostMade, mostName), "File.MIMEType": text(mostText),
	"Format.PUID": name, "Format.Name": text(mostText), "Format.Version": name, "Format.Registry": name, "Format.Warning": text(mostText),
	"VersionRecord.ObjectID": text(mostText), "VersionRecord.Version": count, "VersionRecord.Collection": name, "VersionRecord.Owner": text(mostText),
	"VersionRecord.Title": text(mostText), "VersionRecord.Creator": text(mostText),
	"VersionRecord.Date": text(mostText), "VersionRecord.Files": number(0, mostObject), "VersionRecord.SizeBytes": number(0, mostObject),
	"VersionRecord.Replicas": list(mostMade), "VersionRecord.Inventory": name, "VersionRecord.Padding": number(0, mostPadding), "VersionRecord.Events": list(mostEvents),
	"Replica.Storage": name,
	"Premis.ID":       name, "Premis.ObjectID": text(mostText), "Premis.Version": count, "Premis.ItemID": name, "Premis.Type": name,
	"Premis.Agent": text(mostText), "Premis.Outcome": text(mostText), "Premis.Detail": text(mostText), "Premis.Seq": replaced, "Premis.Hash": replaced,
	"Remains.Version": count, "Remains.Inventory": name, "Remains.Files": name,
	"CheckRecord.Replicas": list(mostMade), "CheckRecord.Events": list(mostMade), "ReplicaCheck.Storage": name, "ReplicaCheck.Outcome": name,
	"CopyRecord.ObjectID": text(mostText), "CopyRecord.Version": count, "CopyRecord.Replicas": list(mostMade), "CopyRecord.Events": list(mostMade),
	"RestoredParcel.Name": text(mostPath), "RestoredParcel.Place": text(mostPath), "RestoredParcel.SizeBytes": number(0, mostObject), "RestoredParcel.SHA256": name,
	"RestoredParcel.Files": number(0, mostObject), "RestorationRecord.Keep": number(0, int64(mostKeep)), "RestorationRecord.Events": list(mostMade),

	"DeliveryTry.Status": number(0, 999), "DeliveryTry.Error": text(mostText),
	"DeliverySpec.Subject": name, "DeliverySpec.About": replaced, "DeliverySpec.State": name, "DeliverySpec.Times": count, "DeliverySpec.Mail": name, "DeliverySpec.To": text(mostText),
	"DeliverySpec.Closing": count, "DeliverySpec.Period": any64, "DeliverySpec.Until": any64, "DeliverySpec.Reason": text(mostText), "DeliverySpec.Why": text(mostText),
	"Callback.URL": text(mostText),

	"ItemQuery.Action": name, "ItemQuery.ParentID": name, "ItemQuery.Collection": name, "ItemQuery.Status": name, "ItemQuery.Stage": name, "ItemQuery.Text": text(mostText),
	"ItemQuery.Within": texts(mostTexts, mostName), "ItemQuery.After": text(mostText), "ItemQuery.Before": text(mostText), "ItemQuery.Limit": any64, "ItemQuery.Most": any64,
	"Query.Terms": list(mostMade), "Term.Field": name, "Term.Value": text(mostText),
	"ReportQuery.BatchID": name, "ReportQuery.Closing": any64, "ReportQuery.List": name, "ReportQuery.Changes": texts(mostMade, mostName),
	"ReportQuery.AfterRow": any64, "ReportQuery.Limit": any64,
	"DeletionQuery.Within": texts(mostTexts, mostName), "DeletionQuery.After": text(mostText), "DeletionQuery.Limit": any64,
}

// The bounds of arguments that are not structs.
var (
	ofOther = bound{most: mostCount, text: mostText, judged: true} // names, and numbers of versions
	ofList  = map[reflect.Type]bound{
		reflect.TypeFor[[]registry.NewJob]():    list(mostJobs),
		reflect.TypeFor[[]registry.File]():      list(mostFiles),
		reflect.TypeFor[[]registry.Premis]():    list(mostEvents),
		reflect.TypeFor[[]registry.Function]():  list(registry.MostFunctions),
		reflect.TypeFor[[]registry.Namespace](): list(registry.MostNamespaces),
		reflect.TypeFor[[]registry.Stage]():     texts(mostMade, mostName),
		reflect.TypeFor[[]string]():             texts(mostMade, mostText),
	}
)

// Check returns ErrInvalid if an argument of a method of registry.ForWorkers is out of bounds.
// Methods that write call it first, for workers in the same process as for workers over the API. It
// does not read the database.
func Check(arguments ...any) error {
	for _, a := range arguments {
		v := reflect.ValueOf(a)
		b, ok := ofList[v.Type()]
		if !ok {
			b = ofOther
		}
		if err := b.judge(v.Type().String(), v); err != nil {
			return err
		}
	}
	return nil
}

// fieldsOf caches the fields to check of each struct.
var fieldsOf sync.Map // reflect.Type to []boundField

type boundField struct {
	at   int
	name string
	bound
}

func fields(t reflect.Type) []boundField {
	if known, ok := fieldsOf.Load(t); ok {
		return known.([]boundField)
	}
	var out []boundField
	for i := range t.NumField() {
		f := t.Field(i)
		b, ok := bounds[t.Name()+"."+f.Name]
		if judged := ok && b.judged || !ok && bearsFields(f.Type); judged && f.Tag.Get("json") != "-" {
			out = append(out, boundField{at: i, name: t.Name() + "." + f.Name, bound: b})
		}
	}
	fieldsOf.Store(t, out)
	return out
}

// bearsFields reports whether a field without a bound is a struct whose fields have bounds.
func bearsFields(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind() == reflect.Struct && t != reflect.TypeFor[time.Time]()
}

// judge returns ErrInvalid if a value is out of bounds. name is the value's name in errors.
func (b bound) judge(name string, v reflect.Value) error {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return b.judge(name, v.Elem())
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return nil
		}
		for _, f := range fields(v.Type()) {
			if err := f.judge(f.name, v.Field(f.at)); err != nil {
				return err
			}
		}
	case reflect.String:
		return b.judgeText(name, v.Len())
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return b.judgeText(name, v.Len())
		}
		if err := b.judgeList(name, v.Len()); err != nil {
			return err
		}
		for i := range v.Len() {
			if err := b.judge(name, v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		if err := b.judgeList(name, v.Len()); err != nil {
			return err
		}
		for each := v.MapRange(); each.Next(); {
			if err := text(mostName).judge(name, each.Key()); err != nil {
				return err
			}
			if err := b.judge(name, each.Value()); err != nil {
				return err
			}
		}
	case reflect.Float64:
		if f := v.Float(); !(f >= float64(b.least) && f <= float64(b.most)) { // NaN fails this
			return fmt.Errorf("%w: %s is %g; it must be from %d to %d", registry.ErrInvalid, name, f, b.least, b.most)
		}
	case reflect.Int, reflect.Int64:
		if n := v.Int(); n < b.least || n > b.most {
			if v.Type() == reflect.TypeFor[time.Duration]() {
				return fmt.Errorf("%w: %s is %s; it must be from %s to %s", registry.ErrInvalid, name, time.Duration(n), time.Duration(b.least), time.Duration(b.most))
			}
			return fmt.Errorf("%w: %s is %d; it must be from %d to %d", registry.ErrInvalid, name, n, b.least, b.most)
		}
	case reflect.Bool:
	default:
		return fmt.Errorf("%w: %s is a %s, which has no bounds", registry.ErrInvalid, name, v.Kind())
	}
	return nil
}

func (b bound) judgeText(name string, n int) error {
	if n > b.text {
		return fmt.Errorf("%w: %s has %s; the limit is %s", registry.ErrInvalid, name, registry.SizeText(int64(n)), registry.SizeText(int64(b.text)))
	}
	return nil
}

func (b bound) judgeList(name string, n int) error {
	if n > b.list {
		return fmt.Errorf("%w: %s has %d entries; the limit is %d", registry.ErrInvalid, strings.TrimPrefix(name, "[]registry."), n, b.list)
	}
	return nil
}
