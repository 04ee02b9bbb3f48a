package s3

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/holdfast/holdfast/netfault"
	"github.com/holdfast/holdfast/storage"
)

// status returns the HTTP status of an answer; 0 if there was none.
func status(err error) int {
	var answer *smithyhttp.ResponseError
	if errors.As(err, &answer) {
		return answer.HTTPStatusCode()
	}
	return 0
}

// code returns the service's error code; "" if there is none.
func code(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

// missing reports whether the object does not exist. A missing bucket is another error. The answer
// to HEAD has no code.
func missing(err error) bool {
	switch code(err) {
	case "NoSuchKey", "NotFound":
		return true
	case "NoSuchBucket", "NoSuchUpload":
		return false
	}
	return status(err) == http.StatusNotFound
}

// taken reports whether the condition of a conditional write failed: the key has an object.
func taken(err error) bool { return status(err) == http.StatusPreconditionFailed }

// conflict reports whether another write to the key was running: the whole upload must be repeated
// (R30).
func conflict(err error) bool { return status(err) == http.StatusConflict && !pathConflict(err) }

// pathConflict reports whether a service that stores objects as files has an object in the place of
// a folder, or a folder in the place of an object.
func pathConflict(err error) bool {
	return code(err) == "ObjectParentIsFile" || code(err) == "ExistingObjectIsDirectory"
}

// uploadGone reports whether a write failed because its upload was completed or aborted.
func uploadGone(err error) bool {
	return status(err) == http.StatusNotFound && code(err) != "NoSuchBucket" && code(err) != "NoSuchKey"
}

// wrap maps an error of the service to one of the contract; op is a verb such as "commit".
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
	return fmt.Errorf("%s %q: %w", op, key, worded(err))
}

// worded returns the error in plain words, without the SDK's chain of calls.
func worded(err error) error {
	var api smithy.APIError
	switch {
	case errors.As(err, &api):
		return &answerError{strings.TrimSuffix(fmt.Sprintf("the service answered %d %s: %s", status(err), api.ErrorCode(), api.ErrorMessage()), ": "), err}
	case status(err) != 0:
		return &answerError{fmt.Sprintf("the service answered %d %s", status(err), http.StatusText(status(err))), err}
	}
	return netfault.Word(err)
}

// answerError is an error in plain words.
type answerError struct {
	text string
	err  error
}

func (e *answerError) Error() string { return e.text }
func (e *answerError) Unwrap() error { return e.err }
