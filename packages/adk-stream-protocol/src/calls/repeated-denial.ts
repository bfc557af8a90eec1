import { isDeepStrictEqual } from 'node:util'

import type { Event } from '@google/adk'

import { readNotes } from '../agent/history/event-notes.ts'

interface Call {
  readonly name: string
  readonly args: Readonly<Record<string, unknown>>
}

/**
 * Whether a person has denied a similar call since their last message, without a reason. A model that calls again in other words
 * would otherwise ask until the person gives in. A denial with a reason may ask for another call, so it does not count.
 */
export function repeatsDenied(events: readonly Event[], call: Call): boolean {
  const deniedIds = new Set<string>()
  for (const event of events.toReversed()) {
    if (isMessage(event)) return false
    // A model writes the messages to agents that are used as tools.
    const { content, customMetadata } = readNotes(event).nested?.event ?? event
    for (const { toolCallId, state, reason } of readNotes({ customMetadata }).decided ?? [])
      if (state === 'denied' && reason === undefined) deniedIds.add(toolCallId)
    for (const { functionCall } of content?.parts ?? [])
      if (deniedIds.has(functionCall?.id ?? '') && functionCall?.name === call.name)
        if (isSimilar(functionCall.args ?? {}, call.args)) return true
  }
  return false
}

/** Whether a person wrote or said an event. Responses to calls are also events of the user. */
function isMessage({ author, content }: Event): boolean {
  return (
    author === 'user' && content?.parts?.some(({ functionResponse }) => functionResponse) !== true
  )
}

/** Whether at most one argument differs. */
function isSimilar(denied: Call['args'], next: Call['args']): boolean {
  const names = new Set([...Object.keys(denied), ...Object.keys(next)])
  const changed = [...names].filter((name) => !isDeepStrictEqual(denied[name], next[name]))
  return changed.length <= 1
}
