import type { AppendEventRequest } from '@google/adk'

/** A session service that appends the answer to calls only if the session still holds the calls. */
interface AnswerAppender {
  /** Checks and appends in one transaction. Returns false, and stores nothing, if a call was removed. */
  appendAnswer(request: AppendEventRequest, calls: readonly string[]): Promise<boolean>
}

/** Tells whether a session service offers `appendAnswer`. */
export function appendsAnswers(service: object): service is AnswerAppender {
  return 'appendAnswer' in service && typeof service.appendAnswer === 'function'
}
