import { useEffect, useRef } from 'react'

interface MathsProps {
  /** LaTeX. */
  readonly text: string
  readonly isBlock: boolean
}

/** Longer formulas stay as they were written. */
const MAX_LENGTH = 4_000

/** Shows a formula as MathML. Shows its LaTeX until the converter is loaded, and if the formula is invalid. */
export function Maths({ text, isBlock }: MathsProps) {
  const ref = useRef<HTMLSpanElement>(null)
  useEffect(() => {
    let isCurrent = true
    const convert = async (): Promise<void> => {
      const { default: temml } = await import('temml')
      if (!isCurrent || !ref.current) return
      // Not trusted: no links, classes or images. The limits bound what macros of a formula may become.
      const limits = { trust: false, maxExpand: 200, maxSize: [20, 20] as [number, number] }
      const target = document.createElement('span')
      temml.render(text, target, { ...limits, displayMode: isBlock, throwOnError: true })
      ref.current.replaceChildren(...target.childNodes)
    }
    // An invalid formula.
    if (text.length <= MAX_LENGTH) void convert().catch(() => undefined)
    return () => {
      isCurrent = false
    }
  }, [text, isBlock])
  // The key replaces an element whose content React does not know.
  return (
    <span key={text} ref={ref} className={isBlock ? 'maths-block' : 'maths'}>
      {text}
    </span>
  )
}
