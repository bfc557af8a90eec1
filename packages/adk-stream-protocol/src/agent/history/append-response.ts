import type { AppendEventRequest } from '@google/adk'

/** A session service that appends a response only if the session still contains the calls. */
interface ResponseAppender {
  /** Checks and appends in one transaction. Returns false, and stores nothing, if a call was removed. */
  appendResponse(request: AppendEventRequest, calls: readonly string[]): Promise<boolean>
}

/** Whether a session service implements `appendResponse`. */
export function canAppendResponse(service: object): service is ResponseAppender {
  return 'appendResponse' in service && typeof service.appendResponse === 'function'
}
