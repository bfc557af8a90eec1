import type { AppendEventRequest } from '@google/adk'

/** A session service that appends the answer to calls only if the session still holds the calls. */
interface ResponseAppender {
  /** Checks and appends in one transaction. Returns false, and stores nothing, if a call was removed. */
  appendResponse(request: AppendEventRequest, calls: readonly string[]): Promise<boolean>
}

/** Tells whether a session service offers `appendResponse`. */
export function canAppendResponse(service: object): service is ResponseAppender {
  return 'appendResponse' in service && typeof service.appendResponse === 'function'
}
