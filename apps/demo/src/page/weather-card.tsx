import { type Call, ToolCard } from 'adk-stream-protocol/react'
import {
  Cloud,
  CloudFog,
  CloudLightning,
  CloudRain,
  CloudSun,
  type LucideIcon,
  Snowflake,
  Sun,
  Wind,
} from 'lucide-react'
import { createElement, type ReactNode } from 'react'
import { useLanguage } from 'adk-stream-protocol-studio/page'
import { z } from 'zod'

import { placeFor } from '../model/reading/places.ts'
import { useDemoLabels } from './i18n/use-demo-labels.ts'

/** Renders the weather and the music as cards. Returns undefined for other calls, and for one without a report. */
export function renderCall(toolName: string, call: Call): ReactNode | undefined {
  const track = toolName === 'change_bgm' ? Track.safeParse(call.input).data?.track : undefined
  if (track !== undefined) return <MusicCard call={call} track={track} />
  if (toolName !== 'get_weather' || call.state !== 'output-available') return undefined
  const report = Report.safeParse(call.output).data
  return report && <WeatherCard call={call} report={report} />
}

const Report = z.object({
  temperature: z.number(),
  condition: z.string(),
  humidity: z.number().optional(),
  feels_like: z.number().optional(),
  wind_speed: z.number().optional(),
  note: z.string().optional(),
})

const Track = z.object({ track: z.number() })
const Place = z.object({ location: z.string() })

function MusicCard({ call, track }: { readonly call: Call; readonly track: number }) {
  const { music } = useDemoLabels()
  return <ToolCard call={call} summary={music.track(track)} />
}

interface WeatherCardProps {
  readonly call: Call
  readonly report: z.infer<typeof Report>
}

function WeatherCard({ call, report }: WeatherCardProps) {
  const { weather } = useDemoLabels()
  const { language } = useLanguage()
  const place = Place.safeParse(call.input).data?.location
  const { temperature, condition, feels_like, humidity, wind_speed } = report
  const facts = [
    feels_like !== undefined && weather.feelsLike(feels_like),
    humidity !== undefined && weather.humidity(humidity),
    wind_speed !== undefined && weather.wind(wind_speed),
  ].filter((fact) => fact !== false)
  return (
    <ToolCard call={call} summary={place === undefined ? undefined : placeFor(place, language)}>
      <div className="weather">
        {createElement(findIcon(condition), { className: 'weather-icon', 'aria-hidden': true })}
        <p className="weather-now">
          <strong>{weather.degrees(temperature)}</strong>{' '}
          <span dir="auto">{weather.conditions[condition.toLowerCase()] ?? condition}</span>
        </p>
        <p className="weather-facts">{facts.join(' · ')}</p>
        {report.note !== undefined && <p className="weather-facts">{weather.sample}</p>}
      </div>
    </ToolCard>
  )
}

const ICONS: readonly (readonly [RegExp, LucideIcon])[] = [
  [/thunder|storm/, CloudLightning],
  [/snow|sleet/, Snowflake],
  [/rain|drizzle|shower/, CloudRain],
  [/fog|mist|haze|smoke/, CloudFog],
  [/partly/, CloudSun],
  [/cloud|overcast/, Cloud],
  [/wind/, Wind],
]

/** The names of the sample weather and of OpenWeatherMap. */
function findIcon(condition: string): LucideIcon {
  const name = condition.toLowerCase()
  return ICONS.find(([pattern]) => pattern.test(name))?.[1] ?? Sun
}
