import { Chat } from '@ai-sdk/react'
import type { ChatTransport, UIMessage, UITools } from 'ai'
import { useState } from 'react'

import type { AdkUIMessage } from '../../client/adk-ui-message.ts'
import type { ResponseChannel } from '../../client/connection/transport.ts'
import { createLocalToolResults, type LocalToolResults } from './use-browser-tools.ts'
import { isBusy } from '../../client/sync/attachable-chat.ts'

/** Any AI SDK transport. Only `webSocketTransport` and `sseTransport` send decisions and tool results at any time. */
export type AnyChatTransport<Tools extends UITools> =
  | (ChatTransport<AdkUIMessage> & ResponseChannel)
  | ChatTransport<AdkUIMessage<Tools>>

/** A chat with what its kind of transport needs. */
export interface ChatInstance<Tools extends UITools> {
  readonly id: string
  readonly transport: AnyChatTransport<Tools>
  readonly chat: Chat<AdkUIMessage<Tools>>
  /** Sends decisions and tool results. Undefined for a plain AI SDK transport. */
  readonly channel: ResponseChannel | undefined
  /** Collects tool results for the next request of a plain AI SDK transport. Undefined if there is a `channel`. */
  readonly results: LocalToolResults | undefined
}

interface ChatInstanceOptions<Tools extends UITools> {
  readonly id: string
  readonly transport: AnyChatTransport<Tools>
  readonly messages?: AdkUIMessage<Tools>[] | undefined
  readonly onError: (error: Error) => void
}

/**
 * Returns one chat per id and transport. The chat is created during rendering and does nothing until it is attached. It is not
 * created by `useChat`, because that (3.0.323) does not let its own chat see that a resumed reply replays from its first chunk.
 */
export function useChatInstance<Tools extends UITools>(
  options: ChatInstanceOptions<Tools>,
): ChatInstance<Tools> {
  const [instance, setInstance] = useState(() => createInstance(options))
  if (instance.id === options.id && instance.transport === options.transport) return instance
  const next = createInstance(options)
  setInstance(next)
  return next
}

function createInstance<Tools extends UITools>(
  options: ChatInstanceOptions<Tools>,
): ChatInstance<Tools> {
  const { id, transport, messages = [], onError } = options
  const channel = isChannel(transport) ? transport : undefined
  const results = channel ? undefined : createLocalToolResults()
  const chat = new Chat<AdkUIMessage<Tools>>({
    id,
    messages: [...messages],
    transport,
    onError,
    ...(results && { sendAutomaticallyWhen: results.areComplete }),
  })
  paceMessages(chat)
  return { id, transport, chat, channel, results }
}

interface ObservableMessages {
  '~registerMessagesCallback'?: (onChange: () => void, minMs?: number) => () => void
}

/** `useChat` renders whenever its own throttle allows it, even if the last drawing is not finished. This replaces the throttle. */
function paceMessages(chat: ObservableMessages): void {
  const register = chat['~registerMessagesCallback']
  if (!register) return
  chat['~registerMessagesCallback'] = (onChange, minMs = 0) => {
    if (minMs <= 0) return register(onChange)
    const { request, cancel } = paceRenders(onChange, minMs)
    const unregister = register(request)
    return () => {
      unregister()
      cancel()
    }
  }
}

function isChannel(transport: object): transport is ResponseChannel {
  return 'observeChat' in transport && 'openStream' in transport && 'responses' in transport
}

type ChatMethods<Message extends UIMessage> = Pick<
  Chat<Message>,
  | 'sendMessage'
  | 'regenerate'
  | 'stop'
  | 'resumeStream'
  | 'clearError'
  | 'addToolOutput'
  | 'addToolApprovalResponse'
>

/** Returns stable methods that look up the chat's method at each call. `useChat` returns the methods from before the chat was attached. */
export function bindChat<Message extends UIMessage>(chat: Chat<Message>): ChatMethods<Message> {
  return {
    sendMessage: (...args) => chat.sendMessage(...args),
    regenerate: (...args) => chat.regenerate(...args),
    stop: () => chat.stop(),
    resumeStream: (...args) => chat.resumeStream(...args),
    clearError: () => chat.clearError(),
    addToolOutput: (...args) => chat.addToolOutput(...args),
    addToolApprovalResponse: (...args) => chat.addToolApprovalResponse(...args),
  }
}

/** The longest time that a page draws nothing because the last drawing took long. */
const MAX_REST_MS = 250
/** A hidden page gets no animation frames. */
const HIDDEN_MS = 500

const IGNORE = (): void => undefined

/** Calls that are passed on at most once per animation frame. */
export interface PacedRender {
  readonly request: () => void
  readonly cancel: () => void
}

/**
 * Passes on calls of `render` at most every `minMs`, in an animation frame. After a drawing, the page has at least as much time for
 * input as the drawing took. Otherwise, chunks that arrive faster than a page can draw them would block it.
 */
export function paceRenders(render: () => void, minMs: number): PacedRender {
  let state: 'idle' | 'scheduled' | 'drawing' = 'idle'
  let isRequested = false
  let restUntil = 0
  let cancelScheduled: () => void = IGNORE

  const draw = (): void => {
    cancelScheduled()
    state = 'drawing'
    isRequested = false
    const startedAt = performance.now()
    render()
    // React renders after this function, and the browser paints after that. The timer runs after both.
    const timer = setTimeout(() => {
      const tookMs = performance.now() - startedAt
      restUntil = performance.now() + Math.min(Math.max(minMs - tookMs, tookMs), MAX_REST_MS)
      state = 'idle'
      if (isRequested) schedule()
    }, 0)
    cancelScheduled = () => clearTimeout(timer)
  }
  const schedule = (): void => {
    state = 'scheduled'
    const restMs = restUntil - performance.now()
    if (restMs <= 0) return void (cancelScheduled = onNextFrame(draw))
    const timer = setTimeout(() => {
      cancelScheduled = onNextFrame(draw)
    }, restMs)
    cancelScheduled = () => clearTimeout(timer)
  }
  return {
    request: () => {
      isRequested = true
      if (state === 'idle') schedule()
    },
    cancel: () => {
      cancelScheduled()
      isRequested = false
      state = 'idle'
    },
  }
}

/** Calls the function in the next animation frame, or some time later if there is none. Returns a function that cancels the call. */
function onNextFrame(call: () => void): () => void {
  const timer = setTimeout(call, hasFrames() ? HIDDEN_MS : 0)
  const frame = hasFrames() ? requestAnimationFrame(call) : undefined
  return () => {
    clearTimeout(timer)
    if (frame !== undefined) cancelAnimationFrame(frame)
  }
}

function hasFrames(): boolean {
  return typeof requestAnimationFrame === 'function' && document.visibilityState === 'visible'
}

/**
 * After a lost connection, the AI SDK reads a reply again from its first chunk. Returns the messages as they were until it has read as
 * much as before. Otherwise, the cards of the reply would be removed and created again, and a click at that moment would be lost.
 */
export function useReplayedMessages<Message extends UIMessage>(
  messages: Message[],
  status: string,
): Message[] {
  const [drawn, setDrawn] = useState(messages)
  const shown = isBusy({ status }) && isBehind(messages, drawn) ? drawn : messages
  // React renders the hook again before it renders the components.
  if (shown !== drawn) setDrawn(shown)
  return shown
}

/** Whether the last message is the beginning of the one that was drawn before. */
function isBehind(messages: readonly UIMessage[], drawn: readonly UIMessage[]): boolean {
  const [now, before] = [messages.at(-1), drawn.at(-1)]
  if (!now || !before || now === before) return false
  if (now.id !== before.id || messages.length !== drawn.length) return false
  const pairs = now.parts.map((part, index) => [part, before.parts[index]] as const)
  if (!pairs.every(([part, other]) => part.type === other?.type && idOf(part) === idOf(other)))
    return false
  return (
    now.parts.length < before.parts.length || pairs.some(([part, other]) => isLess(part, other))
  )
}

type Part = UIMessage['parts'][number]

function idOf(part: Part): string | undefined {
  return 'toolCallId' in part ? part.toolCallId : undefined
}

const BEFORE_CALL = ['input-streaming', 'input-available']

function isLess(part: Part, other: Part | undefined): boolean {
  if (!other) return false
  if ('text' in part && 'text' in other)
    return part.text.length < other.text.length && other.text.startsWith(part.text)
  if (!('toolCallId' in part) || !('toolCallId' in other)) return false
  const step = BEFORE_CALL.indexOf(part.state)
  const drawnStep = BEFORE_CALL.indexOf(other.state)
  return step >= 0 && (drawnStep < 0 || step < drawnStep)
}
