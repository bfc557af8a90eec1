import { useSyncExternalStore } from 'react'

import { DemoInfo } from '../../demo-info.ts'

const listeners = new Set<() => void>()
let info: DemoInfo | undefined
let isRequested = false

/** Returns the server's description of the demo, or undefined until it is loaded. Loads it once. */
export function useDemo(): DemoInfo | undefined {
  return useSyncExternalStore(subscribe, () => info)
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  if (!isRequested) {
    isRequested = true
    // If this fails, the page offers every mode and shows nothing about the model.
    void load().catch(() => undefined)
  }
  return () => void listeners.delete(listener)
}

async function load(): Promise<void> {
  const response = await fetch('/demo')
  info = DemoInfo.safeParse(await response.json()).data
  for (const listener of listeners) listener()
}
