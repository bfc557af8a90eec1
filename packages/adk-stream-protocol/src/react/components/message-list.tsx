import type { UIMessage } from 'ai'
import { type ReactNode, useMemo, useRef, useState, memo, createContext, use } from 'react'

import { NONE_WAITING, type WaitingDecisions } from '../../client/api/decision-outbox.ts'
import { useAdkLabels, useDescribeCall, useAdkSettings } from '../provider.tsx'
import {
  type ApprovalDetails,
  readApprovals,
  type Approval,
  asksForAnswer,
  findUndecided,
  type Decision,
  type UndecidedCall,
  type Votes,
} from '../reading/approval.ts'
import { useSameObject } from '../use-stable.ts'
import { useVoice, type VoiceSource } from '../hooks/use-voice.ts'
import { isRecord } from '../../protocol/guards.ts'
import { isWaiting, getArguments, isCall, type Call, getToolName } from '../reading/call.ts'
import { type PendingSum, sumPending } from '../reading/preview.ts'
import { hasRunApprovedCall, readFailedReply, type ServerError } from '../reading/problem.ts'
import { withoutUndefined } from '../../shared/collections.ts'
import { isBusy } from '../../client/sync/attachable-chat.ts'
import { findInnerQuestions, toWaitsFor } from '../reading/question.ts'
import { Announcer } from './announcer.tsx'
import { ApprovalCard } from './approval-card.tsx'
import { DecideTogether } from './decide-together.tsx'
import { DataView, FileView, Reasoning, Sources, TextView } from './message-content.tsx'
import { isUnsent, MessageFooter, ReplyNotes } from './message-footer.tsx'
import { QuestionCard } from './question-card.tsx'
import { SignInCard } from './sign-in-card.tsx'
import { ToolCard } from './tool-card.tsx'

/**
 * Messages and approvals: a `chat`, or its parts. A prop replaces the same part of `chat`.
 *
 * @inline
 */
export interface MessageListProps extends Partial<ApprovalContextValue> {
  /** The result of `useAdkChat`. */
  readonly chat?: ShownChat | undefined
  /** The messages of `useChat`. Default: those of `chat`, or none. */
  readonly messages?: readonly UIMessage[] | undefined
  /** The `status` of `useChat`. Default: that of `chat`, or `ready`. */
  readonly status?: string | undefined
  /** Sends decisions about several approvals at once. Without it, each is decided by itself. */
  readonly onDecideTogether?:
    | ((
        approvals: readonly Pick<Approval, 'approvalId' | 'preview'>[],
        approved: boolean,
      ) => void | Promise<void>)
    | undefined
  /** Regenerates the last reply. The button is not shown if an approved call may have run in that reply. Pass a stable function. */
  readonly onRegenerate?: (() => void) | undefined
  /** Renders more actions in the footer of each message. Pass a stable function. */
  readonly renderActions?: ((message: UIMessage) => ReactNode) | undefined
  /** Shows what the person is saying, until it is a message. */
  readonly voice?: VoiceSource<SpeechView> | undefined
}

/**
 * The part of the result of `useAdkChat` that the list shows.
 *
 * @inline
 */
interface ShownChat extends Omit<ApprovalContextValue, 'onDecide' | 'onCancelDecision'> {
  readonly decideTogether?: MessageListProps['onDecideTogether']
  readonly messages: readonly UIMessage[]
  readonly status: string
  readonly decide: ApprovalContextValue['onDecide']
  readonly cancelDecision: ApprovalContextValue['onCancelDecision']
}

/** The part of a `Voice` state that the list shows. */
interface SpeechView {
  readonly state: string
  readonly transcript?: { readonly person: string; readonly isInChat: boolean }
}

/** Shows a conversation. A chunk renders only its own message. */
export function MessageList(props: MessageListProps) {
  const { messages, status, onRegenerate, renderActions, voice, ...rest } = toParts(props)
  const { onDecideTogether, ...cards } = rest
  const { message: labels } = useAdkLabels()
  const context = useCardContext(cards, messages)
  const logRef = useRef<HTMLDivElement>(null)
  const busy = isBusy({ status })
  const undecided = findUndecided({ messages, ...context })
  const last = messages.at(-1)
  // A problem of the chat is shown below the list, with what to do.
  const failing = status === 'error' ? last : undefined
  const shown = messages.filter((each) => hasContent(each) || hasFailed(each, failing))
  const hasReply = last?.role === 'assistant' && shown.at(-1) === last
  const canRegenerate =
    hasReply && status === 'ready' && !isWaiting(last) && !hasRunApprovedCall(messages)
  return (
    <>
      <div
        ref={logRef}
        role="log"
        aria-label={labels.conversation}
        // The announcer reads what is complete.
        aria-live="off"
        className="adk-messages"
        data-busy={busy}
        // Focusable by script, and not by the Tab key.
        tabIndex={-1}
      >
        <ApprovalContext value={context}>
          {shown.map((message) => (
            <MessageItem
              key={message.id}
              message={message}
              streaming={busy && message === last}
              showsFailure={message !== failing}
              onRegenerate={message === last && canRegenerate ? onRegenerate : undefined}
              renderActions={renderActions}
            />
          ))}
        </ApprovalContext>
        {voice && <Speech voice={voice} newestId={findNewestSaid(messages)} />}
        {busy && !hasReply && (
          <p className="adk-thinking">
            <span className="adk-pulse" aria-hidden="true" />
            {labels.thinking}
          </p>
        )}
        {!busy && last?.role === 'user' && isStopped(last) && !isUnsent(last) && (
          <p className="adk-stopped">{labels.stopped}</p>
        )}
      </div>
      {onDecideTogether && (
        <DecideTogether
          calls={undecided.filter(({ approval }) => approval.editable).map(toListed)}
          onDecide={(calls, approved) => {
            // The button disappears.
            logRef.current?.focus()
            void onDecideTogether(calls, approved)
          }}
        />
      )}
      <Announcer
        {...{ logRef, messages, busy, voice }}
        undecided={undecided.map(({ approval }) => approval.approvalId)}
      />
    </>
  )
}

/** Returns a call of a chat in the form of the inbox. */
function toListed({ call, approval }: UndecidedCall) {
  const { approvalId, hasPayload, ...terms } = approval
  const listed = { toolName: getToolName(call), args: getArguments(call), payload: hasPayload }
  return { ...terms, ...listed, approvalId, id: approvalId }
}

/** Returns the props, with the parts of the chat that they do not replace. */
function toParts({ chat, ...own }: MessageListProps): ListParts {
  const parts = chat
    ? {
        ...chat,
        onDecide: chat.decide,
        onDecideTogether: chat.decideTogether,
        onCancelDecision: chat.cancelDecision,
      }
    : { messages: NO_MESSAGES, status: 'ready' }
  return { ...parts, ...withoutUndefined(own) }
}

type ListParts = Omit<MessageListProps, 'chat' | 'messages' | 'status'> &
  Pick<ShownChat, 'messages' | 'status'>

const NO_MESSAGES: readonly UIMessage[] = []

/** Returns what the cards need. The same object until something of it changes. */
function useCardContext(
  props: Partial<ApprovalContextValue>,
  messages: readonly UIMessage[],
): CardContext {
  const { details = DEFAULTS.details } = props
  return useSameObject({
    onDecide: props.onDecide ?? DEFAULTS.onDecide,
    onRefresh: props.onRefresh,
    refusals: props.refusals ?? DEFAULTS.refusals,
    votes: props.votes ?? DEFAULTS.votes,
    hints: props.hints ?? DEFAULTS.hints,
    details,
    unconfirmed: props.unconfirmed ?? DEFAULTS.unconfirmed,
    waitingDecisions: props.waitingDecisions ?? DEFAULTS.waitingDecisions,
    isConnected: props.isConnected ?? DEFAULTS.isConnected,
    sums: useSums(messages, details),
    onCancelDecision: props.onCancelDecision,
  })
}

/** Returns the sums of what is pending. The same object while they do not change, because a chunk must not render every card. */
function useSums(
  messages: readonly UIMessage[],
  details: ReadonlyMap<string, ApprovalDetails>,
): ReadonlyMap<string, PendingSum> {
  const sums = sumPending(
    messages
      .flatMap((message) => [...readApprovals(message).values()])
      .filter(({ state }) => state === 'requested')
      .map(({ approvalId, preview }) => ({
        approvalId,
        preview: details.get(approvalId)?.preview ?? preview,
      })),
  )
  const key = JSON.stringify([...sums])
  // The key contains everything that the sums contain.
  // oxlint-disable-next-line react-hooks/exhaustive-deps
  return useMemo(() => (sums.size === 0 ? DEFAULTS.sums : sums), [key])
}

/** Returns the id of the newest message of the person. */
function findNewestSaid(messages: readonly UIMessage[]): string | undefined {
  return messages.findLast(({ role }) => role === 'user')?.id
}

interface SpeechProps {
  readonly voice: VoiceSource<SpeechView>
  /** The id of the newest message of the person. */
  readonly newestId: string | undefined
}

/** Shows speech while it is being recognized. Screen readers read the message that it becomes. */
function Speech({ voice, newestId }: SpeechProps) {
  const { transcript } = useVoice(voice)
  const isHeard = transcript !== undefined && !transcript.isInChat && transcript.person !== ''
  const [start, setStart] = useState({ isHeard: false, newestId })
  if (isHeard !== start.isHeard) setStart({ isHeard, newestId })
  // The message may be shown before the voice reports it. The words must not be shown twice: the conversation would move up and down.
  if (!isHeard || start.newestId !== newestId) return null
  return (
    <article className="adk-message adk-speech" data-role="user" aria-hidden="true">
      <p className="adk-said">{transcript.person}</p>
    </article>
  )
}

/** Returns whether there is anything to show. A new reply is empty. */
function hasContent(message: UIMessage): boolean {
  const isEmpty = message.parts.every(({ type }) => type === 'step-start')
  return !isEmpty || (message.role === 'assistant' && isStopped(message))
}

function hasFailed(message: UIMessage, failing: UIMessage | undefined): boolean {
  return message !== failing && readFailedReply(message) !== undefined
}

function isStopped({ metadata }: UIMessage): boolean {
  return isRecord(metadata) && metadata['stopped'] === true
}

/**
 * Props of `MessageItem`.
 *
 * @inline
 */
interface MessageItemProps {
  readonly message: UIMessage
  /** Whether the message is still being streamed. */
  readonly streaming: boolean
  /** Whether to say that the reply failed. Default true. */
  readonly showsFailure?: boolean | undefined
  /** Regenerates the reply. Pass it for the last message only. */
  readonly onRegenerate?: (() => void) | undefined
  /** Renders more actions in the footer of the message. Pass a stable function. */
  readonly renderActions?: ((message: UIMessage) => ReactNode) | undefined
}

/** Shows one message. A chunk renders only its own message, because `useChat` keeps the identity of unchanged messages. */
export const MessageItem = memo(function MessageItem(props: MessageItemProps) {
  const { message, streaming } = props
  const labels = useAdkLabels()
  const isUser = message.role === 'user'
  const approvals = readApprovals(message)
  const inner = findInnerQuestions(message, approvals)
  const describe = useDescribeCall()
  const describeWait = (toolCallId: string): string | undefined => {
    const waits = toWaitsFor(inner.get(toolCallId) ?? [], (name, call, headline) =>
      describe(name, getArguments(call), headline),
    )
    return waits && labels.tool.waitsFor(waits)
  }
  return (
    <article
      className="adk-message"
      data-role={message.role}
      data-streaming={streaming}
      data-message={message.id}
    >
      <h2 className="adk-hidden">{isUser ? labels.message.you : labels.message.assistant}</h2>
      {message.parts.map((part, index) => (
        // Parts are only appended, so the index identifies a part.
        <MessagePartView
          key={index}
          // A copy, because the AI SDK (6.0.320) mutates the first message object of a reply, and `isSame` compares with the
          // part that was rendered.
          part={{ ...part }}
          role={message.role}
          streaming={streaming}
          approval={isCall(part) ? approvals.get(part.toolCallId) : undefined}
          waitsFor={isCall(part) ? describeWait(part.toolCallId) : undefined}
        />
      ))}
      <Sources parts={message.parts} />
      {!streaming && <ReplyNotes {...props} />}
      {!streaming && <MessageFooter {...props} />}
    </article>
  )
})

type Part = UIMessage['parts'][number]

/** Props of `MessagePartView`. */
interface MessagePartViewProps {
  readonly part: Part
  readonly role: UIMessage['role']
  /** Whether the message is still being streamed. */
  readonly streaming: boolean
  /** The approval of the call, if the part is a call that needs one. */
  readonly approval?: Approval | undefined
  /** What the call waits for inside it, as a sentence. */
  readonly waitsFor?: string | undefined
}

/** Shows one part of a message. Shows nothing for an unknown part type. */
const MessagePartView = memo(function MessagePartView(props: MessagePartViewProps) {
  const { part, role, streaming, approval, waitsFor } = props
  const { renderData } = useAdkSettings()
  if (isCall(part)) return <CallView {...{ call: part, approval, waitsFor }} />
  if (part.type === 'text' && role === 'user')
    return (
      <p className="adk-said" dir="auto">
        {part.text}
      </p>
    )
  if (part.type === 'text')
    return <TextView text={part.text} streaming={streaming && part.state === 'streaming'} />
  if (part.type === 'reasoning')
    return <Reasoning text={part.text} streaming={streaming && part.state === 'streaming'} />
  if (part.type === 'file')
    return <FileView url={part.url} mediaType={part.mediaType} filename={part.filename} />
  if (part.type.startsWith('data-')) return renderData?.(part) ?? <DataView part={part} />
  return null
}, isSame)

interface CallViewProps {
  readonly call: Call
  readonly approval: Approval | undefined
  readonly waitsFor: string | undefined
}

function CallView({ call, approval, waitsFor }: CallViewProps) {
  const { renderCall } = useAdkSettings()
  const context = use(ApprovalContext)
  const { onDecide, onRefresh, refusals, votes, hints, details, sums } = context
  const { unconfirmed, isConnected, waitingDecisions, onCancelDecision } = context
  if (!approval)
    return renderCall?.(getToolName(call), call) ?? <ToolCard {...{ call, waitsFor }} />
  const { approvalId } = approval
  const hint = hints.get(approvalId) ?? approval.hint
  const current = details.get(approvalId)
  const preview = current ? current.preview : approval.preview
  const sending = isConnected ? 'sending' : 'waiting-for-connection'
  const AskCard = asksForAnswer(approval) ? QuestionCard : ApprovalCard
  const Card = approval.kind === 'sign-in' ? SignInCard : AskCard
  return (
    <Card
      call={call}
      approval={{ ...approval, ...(hint !== undefined && { hint }), preview }}
      argsSchema={current?.argsSchema}
      sum={sums.get(approvalId)}
      onRefresh={onRefresh && (() => onRefresh(approvalId))}
      onDecide={(decision) => void onDecide(approvalId, decision)}
      refusal={refusals.get(approvalId)}
      votes={votes.get(approvalId)}
      onCancelDecision={onCancelDecision && (() => onCancelDecision(approvalId))}
      waitsFor={waitsFor}
      waitingDecision={waitingDecisions.get(approvalId)}
      delivery={unconfirmed.has(approvalId) ? sending : 'confirmed'}
    />
  )
}

/** Compares by content, because the AI SDK copies every part of a message when one part grows. */
function isSame(before: MessagePartViewProps, after: MessagePartViewProps): boolean {
  return (
    before.role === after.role &&
    before.streaming === after.streaming &&
    before.waitsFor === after.waitsFor &&
    isShallowlySame(before.part, after.part) &&
    isShallowlySame(before.approval ?? {}, after.approval ?? {})
  )
}

function isShallowlySame(before: object, after: object): boolean {
  const known = Object.entries(before)
  const next = new Map(Object.entries(after))
  return known.length === next.size && known.every(([name, value]) => next.get(name) === value)
}

/** How the cards of a list send decisions, and what they show that the messages do not contain. */
interface ApprovalContextValue {
  /** Sends a decision. Report an error through `refusals`. */
  readonly onDecide: (approvalId: string, decision: Decision) => void | Promise<void>
  /** Why the server refused decisions, by approval id. */
  readonly refusals: ReadonlyMap<string, ServerError>
  /** How many people have approved, by approval id. */
  readonly votes: ReadonlyMap<string, Votes>
  /** Hints that are newer than those in the messages, by approval id. */
  readonly hints: ReadonlyMap<string, string>
  /** The current previews and schemas of pending approvals, by approval id. */
  readonly details: ReadonlyMap<string, ApprovalDetails>
  /** Reads a pending approval again. Without it, a card has no button to load its preview again. */
  readonly onRefresh?: ((approvalId: string) => void) | undefined
  /** The approval ids of decisions that the server has not confirmed. */
  readonly unconfirmed: ReadonlySet<string>
  /** Whether a decision can be sent now. Default true. */
  readonly isConnected: boolean
  /** Votes and answers that wait for the connection, by approval id. */
  readonly waitingDecisions: WaitingDecisions
  /** Takes back a decision that waits for the connection. Returns false if it may have arrived. */
  readonly onCancelDecision?: ((approvalId: string) => boolean) | undefined
}

/** The context of the cards of a list, with what the list computes. */
interface CardContext extends ApprovalContextValue {
  /** The sums of what is pending, by approval id. */
  readonly sums: ReadonlyMap<string, PendingSum>
}

const DEFAULTS: CardContext = {
  onDecide: () => undefined,
  refusals: new Map(),
  votes: new Map(),
  hints: new Map(),
  details: new Map(),
  sums: new Map(),
  unconfirmed: new Set(),
  waitingDecisions: NONE_WAITING,
  isConnected: true,
}

/** A context rather than props: a refusal renders one card and not every message. */
const ApprovalContext = createContext(DEFAULTS)
