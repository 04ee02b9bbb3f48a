package s3

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/holdfast/holdfast/storage"
)

// status is the HTTP status of an answer, or 0 when there was none.
func status(err error) int {
	var answer *smithyhttp.ResponseError
	if errors.As(err, &answer) {
		return answer.HTTPStatusCode()
	}
	return 0
}

// code is the service's own word for an error, or "".
func code(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

// missing says that there is no such object; a missing bucket is another matter. HEAD is answered
// without a code.
func missing(err error) bool {
	switch code(err) {
	case "NoSuchKey", "NotFound":
		return true
	case "NoSuchBucket", "NoSuchUpload":
		return false
	}
	return status(err) == http.StatusNotFound
}

// taken says that the condition of a conditional write does not hold: there is an object at the
// key.
func taken(err error) bool { return status(err) == http.StatusPreconditionFailed }

// conflict says that another write to the key was under way: the service wants the whole upload
// once more (R30).
func conflict(err error) bool { return status(err) == http.StatusConflict && !inTheWay(err) }

// inTheWay says that a service which keeps objects as files has an object where a folder would have
// to be, or the other way round.
func inTheWay(err error) bool {
	return code(err) == "ObjectParentIsFile" || code(err) == "ExistingObjectIsDirectory"
}

// uploadGone says, of a write, that there is no such upload: it was completed, or aborted.
func uploadGone(err error) bool {
	return status(err) == http.StatusNotFound && code(err) != "NoSuchBucket" && code(err) != "NoSuchKey"
}

// wrap turns an error of the service into one of the contract; op is a verb such as "commit".
func wrap(op, key string, err error) error {
	if err == nil {
		return nil
	}
	switch code(err) {
	case "KeyTooLongError", "KeyTooLong":
		return fmt.Errorf("%s: %w", op, &storage.KeyError{Key: key, Reason: "longer than the service allows"})
	case "ObjectParentIsFile":
		return fmt.Errorf("%s: %w", op, &storage.KeyError{Key: key, Reason: "a part of it is an object"})
	case "ExistingObjectIsDirectory":
		return fmt.Errorf("%s: %w", op, &storage.KeyError{Key: key, Reason: "is a folder of other objects"})
	case "QuotaExceeded", "InsufficientStorage", "XMinioStorageFull", "XMinioAdminBucketQuotaExceeded":
		return fmt.Errorf("%s %q: %w: %w", op, key, storage.ErrNoSpace, err)
	}
	switch {
	case missing(err):
		return fmt.Errorf("%s %q: %w", op, key, storage.ErrNotFound)
	case code(err) == "InvalidObjectState":
		return fmt.Errorf("%s %q: %w: %w", op, key, storage.ErrArchived, err)
	case status(err) == http.StatusInsufficientStorage:
		return fmt.Errorf("%s %q: %w: %w", op, key, storage.ErrNoSpace, err)
	}
	return fmt.Errorf("%s %q: %w", op, key, err)
}
