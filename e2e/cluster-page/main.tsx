import { useChat } from '@ai-sdk/react'
import {
  DefaultChatTransport,
  isToolUIPart,
  lastAssistantMessageIsCompleteWithApprovalResponses,
} from 'ai'
import type { AdkUIMessage } from 'adk-stream-protocol/client'
import { createRoot } from 'react-dom/client'

import { openSocketTransport } from './socket-transport.ts'

const query = new URLSearchParams(location.search)
const id = query.get('chat') ?? ''
const isLive = query.has('live')
const transport = isLive
  ? openSocketTransport()
  : new DefaultChatTransport<AdkUIMessage>({ api: '/stream' })

/** A typical page of an AI SDK application: `useChat` with a transport, and a request that stops the reply. */
function Chat({ stored }: { readonly stored: AdkUIMessage[] }) {
  const chat = useChat({
    id,
    messages: stored,
    transport,
    resume: true,
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  })
  const stop = (): void => {
    void chat.stop()
    if (!isLive) void fetch(`/chats/${id}/stop`, { method: 'POST' })
  }
  return (
    <main aria-busy={chat.status === 'submitted' || chat.status === 'streaming'}>
      {chat.messages.map(({ id: messageId, role, parts }) => (
        <section key={messageId} aria-label={role}>
          {parts.map((part, index) => {
            if (part.type === 'text') return <p key={index}>{part.text}</p>
            if (!isToolUIPart(part)) return null
            return (
              <pre key={part.toolCallId} aria-label={part.state}>
                {JSON.stringify(part.output ?? part.input)}
                {part.state === 'approval-requested' && (
                  <button
                    onClick={() =>
                      void chat.addToolApprovalResponse({ id: part.approval.id, approved: true })
                    }
                  >
                    Approve
                  </button>
                )}
              </pre>
            )
          })}
        </section>
      ))}
      {chat.error && <p role="alert">{chat.error.message}</p>}
      <form action={(form) => void chat.sendMessage({ text: String(form.get('text')) })}>
        <input name="text" aria-label="Message" />
      </form>
      <button onClick={stop}>Stop</button>
      <button onClick={() => void chat.resumeStream()}>Resume</button>
    </main>
  )
}

const response = await fetch(`/chats/${id}/messages`)
// The server sends UI messages.
const { messages } = (await response.json()) as { messages: AdkUIMessage[] }
createRoot(document.body.appendChild(document.createElement('div'))).render(
  <Chat stored={messages} />,
)
