'use client'

import 'adk-stream-protocol/react/styles.css'
import '../chat.css'

import { adkApi, sseTransport } from 'adk-stream-protocol/client'
import {
  AdkProvider,
  Composer,
  MessageList,
  ProblemCard,
  useAdkChat,
} from 'adk-stream-protocol/react'

const transport = sseTransport({ url: '/api/agent' })
const api = adkApi({ url: '/api/agent' })

export function Chat() {
  const chat = useAdkChat({ id: 'chat', transport, api, resume: true })
  return (
    <AdkProvider>
      <main>
        <MessageList chat={chat} />
        {chat.problem && <ProblemCard problem={chat.problem} onRecover={chat.recover} />}
        <Composer
          status={chat.status}
          onSend={(message) => void chat.sendMessage(message)}
          onStop={() => void chat.stop()}
          draftKey={chat.draftKey}
        />
      </main>
    </AdkProvider>
  )
}
