import {
  adkApi,
  type AdkUIMessage,
  webSocketTransport,
  Recorder,
  sseTransport,
  type WireEvent,
} from 'adk-stream-protocol/client'
import { type ChatTransport, DefaultChatTransport } from 'ai'
import { z } from 'zod'
import { useSyncExternalStore } from 'react'

import { INSTANCE_HEADER, DemoInfo } from '../../demo-info.ts'
import { ObservableValue } from '../observable-value.ts'
import { type Via, WireLog } from '../inspector/wire-log.ts'
import type { Mode } from '../settings.ts'
import { newId } from '../new-id.ts'

/** The name of the server instance that sent the last response. Undefined if the server has no name. */
export const lastInstance = new ObservableValue<string | undefined>(undefined)

/** `fetch` that records which instance responded. */
const observedFetch: typeof fetch = async (input, init) => {
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

/** The socket of the page. It opens on first use. */
export const live = webSocketTransport({
  url: socketUrl,
  observe: observeVia('socket'),
  // The reply ends at a pending approval, as it does over HTTP, so the person can send another message meanwhile.
  hold: false,
})

/** One transport per mode, shared by all chats of the page. */
export const transports = {
  sse: sseTransport({ url: '', headers, observe, fetch: observedFetch }),
  live,
  direct: observeTransport(new DefaultChatTransport<AdkUIMessage>({ api: '/direct', headers })),
} satisfies Record<Mode, ChatTransport<AdkUIMessage>>

function socketUrl(): string {
  const { protocol, host } = window.location
  return `${protocol === 'https:' ? 'wss' : 'ws'}://${host}/live`
}

type Chunk = Extract<WireEvent, { type: 'chunk' }>['chunk']
type ChunkStream = Awaited<ReturnType<ChatTransport<AdkUIMessage>['sendMessages']>>

/** Observes an AI SDK transport. It resumes nothing, because its server stores no replies. */
function observeTransport(transport: ChatTransport<AdkUIMessage>): ChatTransport<AdkUIMessage> {
  return {
    sendMessages: async (options) => {
      const { chatId, trigger, messageId, messages } = options
      const request = newId()
      const message = messages.at(-1)
      observe({
        type: 'request',
        request,
        chatId,
        trigger,
        ...(message && { message }),
        ...(messageId !== undefined && { messageId }),
      })
      const end = (error?: unknown): void =>
        observe({
          type: 'end',
          request,
          chatId,
          ...(error !== undefined && { error: String(error) }),
        })
      try {
        const stream = await transport.sendMessages(options)
        // The bridge's chunk types are a subset of the AI SDK's. The observer ignores unknown chunks.
        const onChunk = (chunk: unknown): void =>
          observe({ type: 'chunk', request, chatId, chunk: chunk as Chunk })
        return tap(stream, { onChunk, end })
      } catch (error) {
        end(error)
        throw error
      }
    },
    reconnectToStream: async () => null,
  }
}

interface Tap {
  readonly onChunk: (chunk: unknown) => void
  readonly end: (error?: unknown) => void
}

function tap(stream: ChunkStream, { onChunk, end }: Tap): ChunkStream {
  const reader = stream.getReader()
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await reader.read()
        if (!done) {
          onChunk(value)
          return controller.enqueue(value)
        }
        end()
        controller.close()
      } catch (error) {
        end(error)
        throw error
      }
    },
    async cancel(reason) {
      end()
      await reader.cancel(reason)
    },
  })
}

const demoInfo = new ObservableValue<DemoInfo | undefined>(undefined)
let isRequested = false

/** Returns the server's description of the demo, or undefined until it is loaded. Loads it once. */
export function useDemo(): DemoInfo | undefined {
  return useSyncExternalStore(subscribeToDemo, demoInfo.read)
}

/** Returns the same outside of a component. */
export function readDemo(): DemoInfo | undefined {
  return demoInfo.read()
}

function subscribeToDemo(listener: () => void): () => void {
  if (!isRequested) {
    isRequested = true
    // If this fails, the page offers every mode and shows nothing about the model.
    void loadDemo().catch(() => undefined)
  }
  return demoInfo.subscribe(listener)
}

async function loadDemo(): Promise<void> {
  const response = await fetch('/demo')
  demoInfo.set(DemoInfo.safeParse(await response.json()).data)
}
