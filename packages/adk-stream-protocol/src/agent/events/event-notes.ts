import type { Event } from '@google/adk'
import { z } from 'zod'

import { isRecord } from '../../protocol/guards.ts'
import type { AudioCount } from '../../protocol/message.ts'
import type { GrantOffer } from '../../protocol/grants.ts'
import { isGrantOffer } from '../../protocol/grants.ts'
import { STEP_KINDS } from '../../protocol/message.ts'
import { isSignInTerms, QUESTION_KINDS } from '../../protocol/question-terms.ts'
import type { SignInTerms } from '../../protocol/sign-in-terms.ts'
import type { Preview, ShownPreview } from '../../protocol/preview.ts'

// Checked by `PolicyPreview` before it was stored.
const Described = z.custom<Preview>(isRecord)
const Shown = z.custom<ShownPreview>(isRecord)

/** An approval request, with what people need to know to decide. */
const AskedNote = z.object({
  approvalId: z.string(),
  toolCallId: z.string(),
  deadline: z.number(),
  approvers: z.number(),
  hint: z.string().exactOptional(),
  title: z.string().exactOptional(),
  severity: z.enum(['low', 'medium', 'high']).exactOptional(),
  misleading: z.literal(true).exactOptional(),
  icon: z.string().exactOptional(),
  payload: z.unknown().exactOptional(),
  kind: z.enum(QUESTION_KINDS).exactOptional(),
  schema: z.record(z.string(), z.unknown()).exactOptional(),
  signIn: z.custom<SignInTerms>(isSignInTerms).exactOptional(),
  /** Whether the policy gives a preview of the call. */
  hasPreview: z.literal(true).exactOptional(),
  preview: Shown.exactOptional(),
  /** The names of the agents that lead to the call, if it was made inside an agent that is used as a tool. */
  path: z.array(z.string()).exactOptional(),
  /** The grants that the person can choose with the decision. */
  offers: z.array(z.custom<GrantOffer>(isGrantOffer)).exactOptional(),
})
export type AskedNote = z.infer<typeof AskedNote>

/** A decision of a person for calls that followed it. */
const GrantNote = z.object({ id: z.string(), at: z.number() })

/** The outcome of an approval. */
const DecidedNote = z.object({
  toolCallId: z.string(),
  state: z.enum(['approved', 'denied', 'expired', 'cancelled', 'unknown']),
  /** When the call ended, or was denied. */
  at: z.number().exactOptional(),
  /** Who approved or denied: the owner of the chat, and the ids of other principals. */
  by: z.object({ own: z.boolean(), others: z.array(z.string()) }).exactOptional(),
  outcome: z.enum(['succeeded', 'failed']).exactOptional(),
  receipt: Described.exactOptional(),
  reason: z.string().exactOptional(),
  /** The message of the person that decided, and how they said it. */
  reply: z.object({ words: z.string(), channel: z.enum(['typed', 'spoken']) }).exactOptional(),
  /** The grant that decided. */
  grant: GrantNote.exactOptional(),
  editedArgs: z.record(z.string(), z.unknown()).exactOptional(),
  approvedPayload: z.unknown().exactOptional(),
})
export type DecidedNote = z.infer<typeof DecidedNote>

/** An approval that was decided when its call was made. */
const UnaskedNote = z.object({ asked: AskedNote, decided: DecidedNote })
export type UnaskedNote = z.infer<typeof UnaskedNote>

/** A request for an approval or an answer, with the call that it is about. */
const CallQuestion = AskedNote.extend({
  toolName: z.string(),
  args: z.record(z.string(), z.unknown()),
})
export type CallQuestion = z.infer<typeof CallQuestion>

/** A question that a call asks while it runs, with that call. */
const DuringCallNote = CallQuestion.extend({ madeBy: z.string() })

/** A call of an agent that is used as a tool and waits for approvals inside. */
const PausedNote = z.object({
  toolCallId: z.string(),
  /** The id of ADK's confirmation request, which resumes the call. */
  confirmationId: z.string(),
  /** The session of the agent. */
  session: z.string(),
  /** All approvals that are pending inside, at any depth. */
  asked: z.array(CallQuestion),
  /** The approval of the call itself, if it needed one. */
  decided: DecidedNote.exactOptional(),
})
export type PausedNote = z.infer<typeof PausedNote>

/** An event of an agent that is used as a tool, in the session of the chat. The model of the chat does not read it. */
const NestedNote = z.object({
  session: z.string(),
  /** The call that runs the agent. */
  toolCallId: z.string().exactOptional(),
  event: z.custom<Event>(isRecord),
})

const CompletedInput = z.object({
  toolCallId: z.string(),
  response: z.record(z.string(), z.unknown()),
})

/** The approval that a user message decided. */
const RepliedNote = z.object({
  approvalId: z.string(),
  toolCallId: z.string(),
  approved: z.boolean(),
})
export type RepliedNote = z.infer<typeof RepliedNote>

const AudioNote = z.object({
  chunks: z.number(),
  bytes: z.number(),
  seconds: z.number(),
  sampleRate: z.number(),
}) satisfies z.ZodType<AudioCount>

/** When a model call started, when its first output arrived, and when it ended. ADK's timestamp is the start or the last chunk. */
const ModelTimes = z.object({
  startedAt: z.number(),
  firstAt: z.number().exactOptional(),
  endedAt: z.number(),
})
export type ModelTimes = z.infer<typeof ModelTimes>

/** The position of an event in an agent that runs its sub-agents as steps: a `SequentialAgent`, `LoopAgent` or `ParallelAgent`. */
const StepNote = z.object({
  /** The agent that runs the steps. */
  agent: z.string(),
  /** The sub-agent that is the step. */
  step: z.string(),
  /** The iteration of a `LoopAgent`, from 0. */
  iteration: z.number().exactOptional(),
})
export type StepNote = z.infer<typeof StepNote>

/** The progress of a run of an agent with steps. Calls that wait are not part of it: the conversation contains them. */
const ProgressNote = z.object({
  /** The id of the run. It stays the same when the run continues after a pause. */
  id: z.string(),
  agent: z.string(),
  kind: z.enum(STEP_KINDS),
  iteration: z.number().exactOptional(),
  maxIterations: z.number().exactOptional(),
  steps: z.array(z.object({ name: z.string(), state: z.enum(['pending', 'running', 'done']) })),
  /** The edges of a workflow. Only the first note of a run has them. */
  edges: z
    .array(z.object({ from: z.string(), to: z.string(), route: z.string().exactOptional() }))
    .exactOptional(),
})
export type ProgressNote = z.infer<typeof ProgressNote>

/**
 * The start or the outcome of one run of a workflow node. `started` means that the run has not ended, and `waiting` that it continues
 * when it has a response.
 */
const NodeNote = z.object({
  /** The names of the workflow and of its nodes that lead to the node, joined by `.`. */
  path: z.string(),
  state: z.enum(['started', 'done', 'waiting']),
  branch: z.string().exactOptional(),
  output: z.unknown().exactOptional(),
  route: z.unknown().exactOptional(),
  /** What a waiting node was started with. */
  input: z.unknown().exactOptional(),
  /** The ids that ADK waits for. */
  interrupts: z.array(z.string()).exactOptional(),
})
export type NodeNote = z.infer<typeof NodeNote>

/** A call that represents a question of a remote A2A agent. */
const RemoteCallNote = z.object({
  toolCallId: z.string(),
  /** The call of the remote agent that the answer responds to. Absent if it asked with words only. */
  request: z.object({ id: z.string(), name: z.string() }).exactOptional(),
  /** Whether the agent waits until the person has signed in elsewhere. */
  signsIn: z.literal(true).exactOptional(),
})
export type RemoteCallNote = z.infer<typeof RemoteCallNote>

export const EventNotes = z.object({
  /** The assistant message of the event, if its position in the session does not imply it. */
  messageId: z.string().exactOptional(),
  /** On the user event that starts a turn: the id of the user message. */
  userMessageId: z.string().exactOptional(),
  asked: z.array(AskedNote).exactOptional(),
  decided: z.array(DecidedNote).exactOptional(),
  /** Approvals that an earlier decision decided when the call was made, so that nobody was asked. The event has no content. */
  unasked: z.array(UnaskedNote).exactOptional(),
  /** Approved calls that were handed over to the client, which runs them. */
  handedOver: z.array(z.string()).exactOptional(),
  /** Calls of browser tools that the client may run: they need no approval, or are approved. */
  offered: z.array(z.string()).exactOptional(),
  /** Long-running calls of this event. They wait for their results when they are among the `checked` of a later event, or handed over. */
  unchecked: z.array(z.string()).exactOptional(),
  /** Long-running calls that need no approval. */
  checked: z.array(z.string()).exactOptional(),
  /** Long-running calls that the application has completed. The response in this event is the final result. */
  completed: z.array(z.string()).exactOptional(),
  /** On a text that only the model reads: the `adk_request_input` call that it responds to, and the result to show. */
  input: CompletedInput.exactOptional(),
  /** Calls whose response in this event contains an error message that only the model may read. */
  failed: z.array(z.string()).exactOptional(),
  /** On an event without content: the approval that the user message decided, so that the agent does not run. */
  replied: RepliedNote.exactOptional(),
  /** How much audio of the message has been produced so far. The audio itself is not stored. */
  audio: AudioNote.exactOptional(),
  /** The event only sets state and belongs to no message. */
  context: z.boolean().exactOptional(),
  /** On an event that the model wrote: the times of its call. */
  model: ModelTimes.exactOptional(),
  /** Calls whose response in this event is a placeholder. */
  pending: z.array(z.string()).exactOptional(),
  /** Calls of agents used as tools that wait for approvals inside. */
  paused: z.array(PausedNote).exactOptional(),
  nested: NestedNote.exactOptional(),
  /** Questions that calls ask while they run. The event has no content. */
  askedDuringCalls: z.array(DuringCallNote).exactOptional(),
  /** The progress of an agent with steps. The event has no content. */
  progress: ProgressNote.exactOptional(),
  /** The start or the outcome of a workflow node. The event has no content, or is the input of an agent. */
  node: NodeNote.exactOptional(),
  /** The calls in this event that represent questions of a remote A2A agent. */
  remote: z.array(RemoteCallNote).exactOptional(),
  /** The steps that the event is part of, outermost first. */
  steps: z.array(StepNote).exactOptional(),
})

/**
 * The metadata that the bridge adds to an event of the ADK session. It makes the session self-contained: it
 * identifies the messages, their ids and the outcome of each approval. Other ADK programs ignore it.
 */
export type EventNotes = z.infer<typeof EventNotes>

const KEY = 'adk-stream-protocol'
const NO_NOTES: EventNotes = {}

/** Adds notes to the custom metadata of an event, which may have others. */
export function writeNotes(
  notes: EventNotes,
  metadata?: Record<string, unknown>,
): Record<string, unknown> {
  // Most events have none. A literal with this key takes 32 bytes, a spread or a computed key 56.
  if (!metadata) return { 'adk-stream-protocol': notes } satisfies { [KEY]: EventNotes }
  const others = isRecord(metadata[KEY]) ? metadata[KEY] : {}
  return { ...metadata, [KEY]: { ...others, ...notes } }
}

/** The notes that were read. A chat is read often, and its events have the same notes each time. */
const known = new WeakMap<object, EventNotes>()

/** Returns the notes of an event. An event of another program has none. Callers do not change them. */
export function readNotes({
  customMetadata,
}: {
  readonly customMetadata?: Event['customMetadata'] | undefined
}): EventNotes {
  const stored: unknown = customMetadata?.[KEY]
  if (!isRecord(stored)) return NO_NOTES
  const found = known.get(stored)
  if (found !== undefined) return found
  const { data = NO_NOTES } = EventNotes.safeParse(stored)
  known.set(stored, data)
  return data
}

/** Whether an event is the user message with this id. Does not check the other notes: each turn looks at all events of its chat. */
export function isUserMessage({ customMetadata }: Event, id: string): boolean {
  const stored: unknown = customMetadata?.[KEY]
  return isRecord(stored) && stored['userMessageId'] === id
}

/** Returns the event that an event of the chat carries: of an agent that is used as a tool, or the end of a question. */
export function findInner(event: Event): Event | undefined {
  return readNotes(event).nested?.event
}

/** Returns the notes of an event of the chat that carries another one. `session` identifies the agent or the question. */
export function carryInner(session: string, event: Event): EventNotes {
  return { nested: { session, event } }
}

/** Returns the calls inside other calls that have a result in an event. */
export function readInnerResults(event: Event): string[] {
  const parts = findInner(event)?.content?.parts ?? []
  return parts.flatMap(({ functionResponse }) => functionResponse?.id ?? [])
}
