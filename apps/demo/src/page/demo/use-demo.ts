import { useSyncExternalStore } from 'react'

import { DemoInfo } from '../../demo-info.ts'

const listeners = new Set<() => void>()
let info: DemoInfo | undefined
let isAsked = false

/** What the server says of itself, asked for once; nothing until it has answered. */
export function useDemo(): DemoInfo | undefined {
  return useSyncExternalStore(subscribe, () => info)
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  if (!isAsked) {
    isAsked = true
    // Without an answer the page offers everything, and says nothing about the model.
    void ask().catch(() => undefined)
  }
  return () => void listeners.delete(listener)
}

async function ask(): Promise<void> {
  const response = await fetch('/demo')
  info = DemoInfo.safeParse(await response.json()).data
  for (const listener of listeners) listener()
}
