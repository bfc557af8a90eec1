import type { Event, InvocationContext } from '@google/adk'
import { createEvent } from '@google/adk'

import { describeEnding, describeEndInside, toNestedEnding } from '../agent/call-responses.ts'
import type { NestedQuestion } from '../agent/history/event-notes.ts'
import { writeNotes } from '../agent/history/event-notes.ts'
import type { Ledger } from '../approvals/ledger.ts'
import type { Pause } from '../calls/run-state.ts'

/** `decided`: the agent can continue. `cancelled`: it cannot, because nothing that it waits for was decided. */
type InsideState = 'waiting' | 'decided' | 'cancelled'

/** Returns the state of the approvals that an agent waits for. */
export async function readInside(
  ledger: Ledger,
  asked: readonly NestedQuestion[],
): Promise<InsideState> {
  const approvals = await Promise.all(asked.map(({ approvalId }) => ledger.get(approvalId)))
  const states = approvals.flatMap((approval) => approval?.state.name ?? 'cancelled')
  const ended = states.filter((state) => state !== 'requested')
  if (ended.length === 0) return 'waiting'
  return ended.every((state) => state === 'cancelled') ? 'cancelled' : 'decided'
}

/** Cancels approvals inside an agent. An earlier decision wins. */
export async function withdrawInside(
  ledger: Ledger,
  asked: readonly NestedQuestion[],
  reason: string,
): Promise<void> {
  for (const { approvalId } of asked) await ledger.cancel(approvalId, reason)
}

interface EndedInside {
  /** The response to the call that runs the agent. */
  readonly response: { readonly error: string } | undefined
  /** The events with the ends of the calls inside. */
  readonly events: readonly Event[]
}

/** Returns how the calls inside an agent ended that does not continue. */
export async function describeInside(
  ledger: Ledger,
  { asked, session }: Pause,
  { messageId, context }: { readonly messageId: string; readonly context: InvocationContext },
): Promise<EndedInside> {
  const events: Event[] = []
  let response: EndedInside['response']
  for (const { approvalId, toolCallId: id, toolName: name } of asked) {
    const approval = await ledger.get(approvalId)
    const ending = approval && describeEnding(approval)
    if (!ending) continue
    response ??= describeEndInside(name, ending.response)
    const event = toNestedEnding({ id, name, response: ending.response }, ending.note)
    const { invocationId, agent } = context
    events.push(
      createEvent({
        invocationId,
        ...(agent && { author: agent.name }),
        customMetadata: writeNotes({ messageId, nested: { session, event } }),
      }),
    )
  }
  return { response, events }
}
