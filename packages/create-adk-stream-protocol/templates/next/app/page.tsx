import { Suspense } from 'react'

import { Chat } from './chat'

export default function Page() {
  // `useChat` of AI SDK 6 makes a random id, which Next.js does not prerender (`cacheComponents`).
  return (
    <Suspense>
      <Chat />
    </Suspense>
  )
}
