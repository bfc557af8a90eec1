import { randomUUID } from 'node:crypto'

import type { Event } from '@google/adk'
import { createEvent } from '@google/adk'

import type { ProtocolError } from '../../protocol/errors.ts'
import type { TurnError } from '../../protocol/message.ts'
import { writeNotes } from '../events/event-notes.ts'
import { REPLY_FAILED } from './model-outcome.ts'

/** Creates the event that stores how a reply failed, so that a reload shows it. */
export function createFailureEvent(
  messageId: string,
  author: string,
  { code, retryAfterSeconds }: TurnError | ProtocolError,
): Event {
  return createEvent({
    author,
    invocationId: randomUUID(),
    errorCode: REPLY_FAILED,
    errorMessage: JSON.stringify({ code, retryAfterSeconds }),
    customMetadata: writeNotes({ messageId }),
  })
}
