import {
  adkApi,
  type AdkUIMessage,
  webSocketTransport,
  Recorder,
  sseTransport,
  type WireEvent,
} from 'adk-stream-protocol/client'
import type { ChatTransport } from 'ai'
import { z } from 'zod'
import { useMemo } from 'react'

import { INSTANCE_HEADER } from '../../studio-info.ts'
import { ObservableValue } from '../observable-value.ts'
import { type Via, WireLog } from '../inspector/wire-log.ts'
import { usePlugin } from '../plugin/plugin-context.ts'
import { observeTransport } from './observe-transport.ts'

/** The name of the server instance that sent the last response. Undefined if the server has no name. */
export const lastInstance = new ObservableValue<string | undefined>(undefined)

/** `fetch` that records which instance responded. */
export const observedFetch: typeof fetch = async (input, init) => {
  const response = await fetch(input, init)
  const name = response.headers.get(INSTANCE_HEADER)
  if (name !== null && name !== lastInstance.read()) lastInstance.set(name)
  return response
}

/** Both observe the traffic between the page and the server. */
export const log = new WireLog()
export const recorder = new Recorder()

const observeVia =
  (via: Via) =>
  (event: WireEvent): void => {
    log.observe(event, via)
    recorder.observe(event)
  }
const observe = observeVia('http')

// The server writes hints in this language. The person may have chosen another one than the browser's.
const headers = () => ({ 'accept-language': document.documentElement.lang })

/** Records how many people have approved a call. Streams do not contain it. */
async function recordVotes(response: Response): Promise<void> {
  if (!recorder.isRecording || !response.ok) return
  const read: unknown = await response.clone().json()
  const view = ApprovalView.safeParse(read)
  if (!view.success) return
  const { id: approvalId, chatId, approvals, voted } = view.data.approval
  recorder.observe({ type: 'votes', chatId, approvalId, given: approvals.given, voted })
}

const ApprovalView = z.object({
  approval: z.object({
    id: z.string(),
    chatId: z.string(),
    approvals: z.object({ given: z.number(), needed: z.number().min(2) }),
    voted: z.boolean(),
  }),
})

/** Requests that change something are lines of the log too: decisions, votes, new titles. The lists that the page reads are not. */
const loggedFetch: typeof fetch = async (input, init) => {
  const { pathname } = new URL(input instanceof Request ? input.url : input, location.href)
  const { method = 'GET', body } = init ?? {}
  const isApproval = pathname.startsWith('/approvals/')
  if (method === 'GET') {
    const read = await observedFetch(input, init)
    if (isApproval) await recordVotes(read)
    return read
  }
  const respond = log.observeCall({
    method,
    path: pathname,
    ...(typeof body === 'string' && { body: JSON.parse(body) as unknown }),
  })
  const response = await observedFetch(input, init)
  respond(response.status)
  if (isApproval) await recordVotes(response)
  return response
}

export const api = adkApi({ url: '', headers, fetch: loggedFetch })

/** The agents that were chosen for new chats, by the id of the chat. */
export const newChatAgents = new Map<string, string>()

const agent = (chatId: string): string | undefined => newChatAgents.get(chatId)

/** The socket of the page. It opens on first use. */
export const live = webSocketTransport({
  url: socketUrl,
  agent,
  observe: observeVia('socket'),
  // The reply ends at a pending approval, as it does over HTTP, so the person can send another message meanwhile.
  hold: false,
})

/** One transport per mode of the agent, shared by all chats of the page. */
const sse = sseTransport({ url: '', agent, headers, observe, fetch: observedFetch })

/** Returns the transport of a mode. */
export function useTransport(mode: string): ChatTransport<AdkUIMessage> {
  const { modes } = usePlugin()
  return useMemo(() => {
    if (mode === 'live') return live
    const added = modes?.find(({ name }) => name === mode)
    return added ? observeTransport(added.transport, observe) : sse
  }, [mode, modes])
}

function socketUrl(): string {
  const { protocol, host } = window.location
  return `${protocol === 'https:' ? 'wss' : 'ws'}://${host}/live`
}
