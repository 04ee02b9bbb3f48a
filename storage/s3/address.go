package s3

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/holdfast/holdfast/storage"
)

// location is a parsed address.
type location struct {
	bucket    string
	prefix    string // "" or ending in a slash
	endpoint  string // "" for AWS
	region    string // "" for that of the default chain
	pathStyle bool
	class     types.StorageClass // of committed objects; "" for the bucket's default
}

// classes are the storage classes whose objects can be read at any time. That is required: stored
// objects are read back before they count. Only a rule of the bucket moves objects to the archives
// (GLACIER, DEEP_ARCHIVE).
var classes = []types.StorageClass{
	types.StorageClassStandard, types.StorageClassStandardIa, types.StorageClassOnezoneIa, types.StorageClassIntelligentTiering,
	types.StorageClassGlacierIr, types.StorageClassReducedRedundancy,
}

// maxPrefix leaves keys most of the 1,024 bytes that S3 allows.
const maxPrefix = 256

// errAddress starts the errors about an address. They never quote it, since it may contain a
// password.
var errAddress = errors.New("storage address: want s3://BUCKET/PREFIX?endpoint=URL&region=NAME&path_style=BOOL&class=NAME")

func parseAddress(address string) (location, error) {
	refuse := func(why string) (location, error) { return location{}, fmt.Errorf("%w: %s", errAddress, why) }
	u, err := url.Parse(address)
	if err != nil {
		return refuse("malformed") // the error would quote it
	}
	if u.Scheme != "s3" || u.Host == "" || u.Port() != "" || u.Fragment != "" {
		return refuse("the bucket is missing, or there is a port or fragment")
	}
	if u.User != nil {
		return refuse("credentials are not allowed; they come from the environment or the task's role")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return refuse("malformed query")
	}
	for name, values := range query {
		if !slices.Contains([]string{"endpoint", "region", "path_style", "class"}, name) {
			return refuse(fmt.Sprintf("unknown parameter %q", name))
		}
		if len(values) != 1 {
			return refuse(fmt.Sprintf("parameter %q is given twice", name))
		}
	}
	at := location{bucket: u.Host, region: query.Get("region"), endpoint: query.Get("endpoint")}
	if folder := strings.Trim(u.Path, "/"); folder != "" {
		if err := storage.CheckKey(folder); err != nil || len(folder) > maxPrefix || needsHex(folder) {
			return refuse("the prefix is not a valid beginning of keys")
		}
		at.prefix = folder + "/"
	}
	if at.endpoint != "" {
		e, err := url.Parse(at.endpoint)
		if err != nil || e.Scheme != "http" && e.Scheme != "https" || e.Host == "" || e.User != nil || e.RawQuery != "" {
			return refuse("endpoint is not an http(s) URL without credentials")
		}
	}
	if text := query.Get("path_style"); text != "" {
		if at.pathStyle, err = strconv.ParseBool(text); err != nil {
			return refuse("path_style is neither true nor false")
		}
	}
	if text := query.Get("class"); text != "" {
		if at.class = types.StorageClass(text); !slices.Contains(classes, at.class) {
			var names []string
			for _, c := range classes {
				names = append(names, string(c))
			}
			return refuse(fmt.Sprintf("objects of this class cannot be read at once; use one of %s", strings.Join(names, ", ")))
		}
	}
	return at, nil
}
