import { useChat } from '@ai-sdk/react'
import { DefaultChatTransport, type UIMessage } from 'ai'
import { type KeyboardEvent, useState } from 'react'
import { createRoot } from 'react-dom/client'

interface PeerProps {
  readonly id: string
  readonly saved: UIMessage[]
}

/** What the demo's page is measured beside: the least that `useChat` needs to be a page. It prints text, and nothing else. */
function Peer({ id, saved }: PeerProps) {
  const [transport] = useState(() => new DefaultChatTransport({ api: '/stream' }))
  const { messages, status, sendMessage } = useChat({ id, messages: saved, transport })
  const [draft, setDraft] = useState('')
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key !== 'Enter') return
    event.preventDefault()
    void sendMessage({ text: draft })
    setDraft('')
  }
  return (
    <>
      <h1>Chat</h1>
      <div role="log" aria-busy={status === 'submitted' || status === 'streaming'}>
        {messages.map((message) => (
          <p key={message.id} className="message">
            {textOf(message)}
          </p>
        ))}
      </div>
      <textarea
        aria-label="Message"
        value={draft}
        onChange={({ target }) => setDraft(target.value)}
        onKeyDown={onKeyDown}
      />
    </>
  )
}

function textOf({ parts }: UIMessage): string {
  return parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
}

const id = new URLSearchParams(location.search).get('chat')
const response = id && (await fetch(`/chats/${id}/messages`))
const { messages: saved } = (response ? await response.json() : { messages: [] }) as {
  messages: UIMessage[]
}
const root = document.getElementById('root')
if (root) createRoot(root).render(<Peer id={id ?? crypto.randomUUID()} saved={saved} />)
