import { useSyncExternalStore } from 'react'

import { StudioInfo } from '../../studio-info.ts'
import { ObservableValue } from '../observable-value.ts'

const studioInfo = new ObservableValue<StudioInfo | undefined>(undefined)
let isRequested = false

/** Returns what the server says about the agents and the model, or undefined until it is loaded. Loads it once. */
export function useStudio(): StudioInfo | undefined {
  return useSyncExternalStore(subscribe, studioInfo.read)
}

/** Returns the same outside of a component. */
export function readStudio(): StudioInfo | undefined {
  return studioInfo.read()
}

function subscribe(listener: () => void): () => void {
  if (!isRequested) {
    isRequested = true
    // If this fails, the page offers every mode and shows nothing about the model.
    void loadStudio().catch(() => undefined)
  }
  return studioInfo.subscribe(listener)
}

async function loadStudio(): Promise<void> {
  const response = await fetch('/studio')
  studioInfo.set(StudioInfo.safeParse(await response.json()).data)
}
