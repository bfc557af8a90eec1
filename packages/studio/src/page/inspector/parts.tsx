import { useEffect, useState } from 'react'

import { useLanguage } from '../i18n/language.tsx'
import { en, type InspectorLabels, ja } from './labels.ts'

export function useInspectorLabels(): InspectorLabels {
  return useLanguage().language === 'ja' ? ja : en
}

/** Returns the current time, updated every second while it is needed. */
export function useNow(isNeeded: boolean): number {
  const [now, setNow] = useState(() => Date.now())
  useEffect(() => {
    if (!isNeeded) return undefined
    const timer = setInterval(() => setNow(Date.now()), 1000)
    return () => clearInterval(timer)
  }, [isNeeded])
  return now
}

/** Scrollable text. It is focusable, so that it can be scrolled by keyboard. */
export function ScrolledText({ children }: { readonly children: string }) {
  // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
  return <pre tabIndex={0}>{children}</pre>
}
