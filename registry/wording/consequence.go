package wording

import "github.com/holdfast/holdfast/registry"

// Confirmation returns the error for an act whose consequences are not confirmed, with their English.
func Confirmation(itemID string, act registry.Act, entails []registry.Statement) *registry.ConfirmationNeeded {
	confirm := &registry.ConfirmationNeeded{ItemID: itemID, Act: act, Entails: entails}
	for _, s := range entails {
		confirm.Consequences = append(confirm.Consequences, Statement(English{}, s, itemID))
	}
	return confirm
}

// consequences word what an act entails.
var consequences = map[registry.Says]func(phrase, registry.Statement) string{
	registry.SaysBatchEnds: func(p phrase, _ registry.Statement) string {
		return p.T("the batch ends for good: neither it nor the jobs aborted with it can be requeued; to try again, submit what is still wanted")
	},
	registry.SaysJobEnds: func(p phrase, _ registry.Statement) string {
		return p.T("the job ends for good: it cannot be requeued; to try again, submit what is still wanted")
	},
	registry.SaysItemEnds: func(p phrase, _ registry.Statement) string {
		return p.T("it ends for good: it cannot be requeued")
	},
	registry.SaysReportedFailed: func(p phrase, s registry.Statement) string {
		return p.T("batch %s reports it as failed", p.Item(s.ItemID, ""))
	},
	registry.SaysNotListed: func(p phrase, s registry.Statement) string {
		return p.T("batch %s is not completed: its report will not list this job", p.Item(s.ItemID, ""))
	},
	registry.SaysStagingGoes: func(p phrase, s registry.Statement) string {
		if s.N == 0 {
			return p.T("%s in staging are deleted", p.Size(s.Bytes))
		}
		return p.T("%[2]s in staging of %[1]d job are deleted|%[2]s in staging of %[1]d jobs are deleted", s.N, p.Size(s.Bytes))
	},
	registry.SaysWaitingAborted: func(p phrase, s registry.Statement) string {
		return p.T("%d item that waits for its success is aborted, too|%d items that wait for its success are aborted, too", s.N)
	},
	registry.SaysVersionStays: func(p phrase, s registry.Statement) string {
		return p.T("version %d of %s is preserved and stays", s.N, p.Name(s.Name))
	},
	registry.SaysReceiverUntold: func(p phrase, s registry.Statement) string {
		return p.T("%s is not notified that it is preserved", p.Name(s.Name))
	},
	registry.SaysStepsSkipped: func(p phrase, _ registry.Statement) string {
		return p.T("the job's remaining steps are skipped, such as making the object's name public")
	},
	registry.SaysMailAborted: func(p phrase, s registry.Statement) string {
		return p.T("a mail to %s says that it was aborted, with the reason given; there will be no report", p.Name(s.Name))
	},
	registry.SaysMailDeleted: func(p phrase, s registry.Statement) string {
		return p.T("a mail to %s says that it was deleted, with the reason given; there will be no report", p.Name(s.Name))
	},
	registry.SaysLastReport: func(p phrase, _ registry.Statement) string {
		return p.T("the depositor gets no further message after the last report")
	},
	registry.SaysDepositorUntold: func(p phrase, _ registry.Statement) string {
		return p.T("the depositor is not notified of this")
	},
	registry.SaysJobsAborted: func(p phrase, s registry.Statement) string {
		return p.T("%d job is aborted|%d jobs are aborted", s.N)
	},
	registry.SaysJobsDeleted: func(p phrase, s registry.Statement) string {
		text := p.T("%d job is deleted|%d jobs are deleted", s.N)
		if s.Of > 0 {
			text = p.T("%s, %d of them stopped first", text, s.Of)
		}
		return text
	},
	registry.SaysCompletedStay: func(p phrase, s registry.Statement) string {
		return p.T("what %d completed job stored stays|what %d completed jobs stored stays", s.N)
	},
	registry.SaysFailedStay: func(p phrase, s registry.Statement) string {
		return p.T("%d job that failed or was cancelled stays as it is|%d jobs that failed or were cancelled stay as they are", s.N)
	},
	registry.SaysUndelivered: func(p phrase, s registry.Statement) string {
		return p.T("%d job whose object is preserved, but whose callback was not delivered, stays as it is|"+
			"%d jobs whose objects are preserved, but whose callbacks were not delivered, stay as they are", s.N)
	},
	registry.SaysObjectsStay: func(p phrase, s registry.Statement) string {
		return p.T("the object of %d job that did not complete is preserved and stays|the objects of %d jobs that did not complete are preserved and stay", s.N)
	},
	registry.SaysCompleteUntold: func(p phrase, s registry.Statement) string {
		return p.T("%d job whose object is preserved already completes; its receiver is not notified|"+
			"%d jobs whose objects are preserved already complete; their receivers are not notified", s.N)
	},
	registry.SaysCompleteYet: func(p phrase, s registry.Statement) string {
		return p.T("%d job whose object is preserved already completes|%d jobs whose objects are preserved already complete", s.N)
	},
	registry.SaysNotAborted: func(p phrase, s registry.Statement) string {
		return p.T("%d job is past the point of no return: it is not aborted, and its version is carried on|"+
			"%d jobs are past the point of no return: they are not aborted, and their versions are carried on", s.N)
	},
	registry.SaysNotDeleted: func(p phrase, s registry.Statement) string {
		return p.T("%d job is past the point of no return: it is not deleted, and its version is carried on|"+
			"%d jobs are past the point of no return: they are not deleted, and their versions are carried on", s.N)
	},
	registry.SaysAsked: func(p phrase, s registry.Statement) string {
		return p.T("asked for by %s at %s: %s", p.Name(s.Name), p.Time(*s.Since), p.Name(s.Text))
	},
	registry.SaysAbandoned: func(p phrase, s registry.Statement) string {
		return p.T("version %d of %s is abandoned: what the job wrote of it is removed from the storages", s.N, p.Name(s.Name))
	},
	registry.SaysCompleteKept: func(p phrase, _ registry.Statement) string {
		return p.T("a version that is complete in a storage is kept: the job fails again and says so")
	},
	registry.SaysThenRequeue: func(p phrase, _ registry.Statement) string {
		return p.T("afterwards requeue the job, which makes the version again, or delete it")
	},
	registry.SaysMustAgree: func(p phrase, s registry.Statement) string {
		return p.T("another admin must agree within %d days; only then is version %d of %s abandoned", s.Of, s.N, p.Name(s.Name))
	},
	registry.SaysWithdraws: func(p phrase, _ registry.Statement) string {
		return p.T("a requeue before that withdraws the request and continues with the version")
	},
}
