import { Window } from 'happy-dom'
import { afterEach } from 'vitest'

/** The browser globals that React and the components need. The network is Node's. */
const NAMES = [
  'document',
  'navigator',
  'Node',
  'Element',
  'HTMLElement',
  'HTMLIFrameElement',
  'HTMLInputElement',
  'DocumentFragment',
  'MutationObserver',
  'getComputedStyle',
] as const

if (!('document' in globalThis)) {
  const page = new Window({ url: 'http://localhost/' })
  Object.defineProperty(globalThis, 'window', { value: page })
  for (const name of NAMES)
    Object.defineProperty(globalThis, name, { value: page[name], configurable: true })
}

// It looks for the document when it is loaded.
const { cleanup, configure } = await import('@testing-library/react')

// The server that answers is a real one.
configure({ asyncUtilTimeout: 120_000, reactStrictMode: true })

afterEach(cleanup)
