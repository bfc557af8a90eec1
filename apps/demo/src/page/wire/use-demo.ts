import { useSyncExternalStore } from 'react'

import { DemoInfo } from '../../demo-info.ts'
import { ObservableValue } from '../observable-value.ts'

const info = new ObservableValue<DemoInfo | undefined>(undefined)
let isRequested = false

/** Returns the server's description of the demo, or undefined until it is loaded. Loads it once. */
export function useDemo(): DemoInfo | undefined {
  return useSyncExternalStore(subscribe, info.read)
}

function subscribe(listener: () => void): () => void {
  if (!isRequested) {
    isRequested = true
    // If this fails, the page offers every mode and shows nothing about the model.
    void load().catch(() => undefined)
  }
  return info.subscribe(listener)
}

async function load(): Promise<void> {
  const response = await fetch('/demo')
  info.set(DemoInfo.safeParse(await response.json()).data)
}
